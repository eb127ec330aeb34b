"""Format `env`: exports of a shell, with the variables that PyIceberg reads."""

from __future__ import annotations

import shlex

from lakewright_spark.catalog import CatalogConfig

from lakewright.cli.config_formats.config_format import ConfigFormat


def _render_exports(config: CatalogConfig) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in config.environment().items())


def _describe_unnamed_warehouses(config: CatalogConfig) -> str:
    names = ", ".join(config.list_inexpressible_warehouses())
    return f"PyIceberg's variables cannot name {names}; use --format pyiceberg instead" if names else ""


FORMAT = ConfigFormat(_render_exports, _describe_unnamed_warehouses)
