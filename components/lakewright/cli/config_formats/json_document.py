"""Format `json`: the catalog configuration as it is, for `LAKEWRIGHT_CATALOG_FILE`."""

from __future__ import annotations

from lakewright_spark.catalog import CatalogConfig

from lakewright.cli.config_formats.config_format import ConfigFormat

FORMAT = ConfigFormat(CatalogConfig.to_json)
