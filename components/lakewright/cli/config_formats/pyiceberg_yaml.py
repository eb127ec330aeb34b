"""Format `pyiceberg`: a .pyiceberg.yaml."""

from __future__ import annotations

from lakewright_spark.catalog import CatalogConfig

from lakewright.cli.config_formats.config_format import ConfigFormat

FORMAT = ConfigFormat(CatalogConfig.pyiceberg_yaml)
