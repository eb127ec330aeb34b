"""Format `env`: exports of a shell, with the variables that PyIceberg reads."""

from __future__ import annotations

import shlex

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest


def _render_exports(request: ConfigRequest) -> dict[str, str]:
    variables = request.config.environment()
    return {"catalog.env": "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())}


def _describe_unnamed_warehouses(request: ConfigRequest) -> tuple[str, ...]:
    names = ", ".join(request.config.list_inexpressible_warehouses())
    return (f"PyIceberg's variables cannot name {names}; use --format pyiceberg instead",) if names else ()


FORMAT = ConfigFormat(_render_exports, _describe_unnamed_warehouses)
