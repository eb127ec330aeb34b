"""A catalog in a folder of one test: SQLite and local files, so that no server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from pyiceberg.catalog.sql import SqlCatalog


@pytest.fixture
def local_config() -> CatalogConfig:
    """The configuration of a tenant whose warehouse `local` is the local catalog."""
    warehouse = CatalogWarehouse(name="local", location="s3://unused/warehouse")
    return CatalogConfig(kind="jdbc", tenant="acme", uri="sqlite:////unused.db", warehouses=[warehouse])


@pytest.fixture
def local_catalog(tmp_path: Path) -> SqlCatalog:
    """PyIceberg's own catalog, with an empty namespace `sales`."""
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/files")
    catalog.create_namespace("sales")
    return catalog
