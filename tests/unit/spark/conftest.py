"""A catalog in the folder of a test, on SQLite and local files without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from pyiceberg.catalog.sql import SqlCatalog


@pytest.fixture
def local_config() -> CatalogConfig:
    """Return the configuration of a tenant whose warehouse `local` is the local catalog."""
    warehouse = CatalogWarehouse(name="local", location="s3://unused/warehouse")
    return CatalogConfig(kind="jdbc", tenant="acme", uri="sqlite:////unused.db", warehouses=[warehouse])


@pytest.fixture
def local_catalog(tmp_path: Path) -> SqlCatalog:
    """Return PyIceberg's catalog with an empty namespace `sales`."""
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/files")
    catalog.create_namespace("sales")
    return catalog
