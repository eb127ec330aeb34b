"""Options of Iceberg's Java client for engines that embed the client: without classes of this project."""

from __future__ import annotations

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse, kinds

from lakewright.config_formats.properties import select_properties
from lakewright.config_formats.values import ICEBERG_JAVA, gather_values


def list_secret_references(config: CatalogConfig, warehouse: CatalogWarehouse) -> dict[str, str]:
    """Return the options with secrets: references that Iceberg's client resolves in its process."""
    return select_properties("iceberg", "0", gather_values(config, warehouse, ICEBERG_JAVA))


def list_options(config: CatalogConfig, warehouse: CatalogWarehouse) -> dict[str, str]:
    """Return all options of a warehouse's catalog."""
    return kinds.java_options(config, warehouse) | list_secret_references(config, warehouse)
