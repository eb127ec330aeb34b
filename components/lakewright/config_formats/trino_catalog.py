"""Format `trino`: a catalog file for each warehouse, for `etc/catalog`."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import select_properties
from lakewright.config_formats.values import SecretSyntax, describe_variables, gather_values

_SYNTAX = SecretSyntax(lambda variable: f"${{ENV:{variable}}}")
_RESERVED = "system"
"""Name of the only catalog that Trino has itself."""


def _render_files(request: ConfigRequest) -> dict[str, str]:
    files: dict[str, str] = {}
    for warehouse in request.config.warehouses:
        properties = select_properties("trino", request.version, gather_values(request.config, warehouse, _SYNTAX))
        lines = [f"{name}={_escape_value(value)}\n" for name, value in properties.items()]
        files[f"{warehouse.name}.properties"] = "".join(lines)
    return files


def _list_reserved_names(request: ConfigRequest) -> tuple[str, ...]:
    """Return a problem for each warehouse with the name of the catalog that Trino has itself, in any case."""
    return tuple(
        f"warehouse {warehouse.name} has the name of a catalog that Trino has itself, with which Trino does not start:"
        " leave the warehouse out with --warehouse, or give it another name in the spec (`renamed_from`)"
        for warehouse in request.config.warehouses
        if warehouse.name.casefold() == _RESERVED
    )


def _escape_value(value: str) -> str:
    """Return a value as Java's `Properties` read it: Latin-1 with escapes."""
    escaped = value.replace("\\", "\\\\")
    units = escaped.encode("utf-16-be")
    codes = [int.from_bytes(units[index : index + 2], "big") for index in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


FORMAT = ConfigFormat(
    _render_files,
    lambda request: describe_variables(request.config, _SYNTAX),
    EngineFacts(
        title="Trino",
        version="482",
        oldest="480",
        oldest_reason="versions 439 to 479 show vended keys in the query JSON (CVE-2026-34214), and older versions"
        " use none",
        secrets="`${ENV:NAME}`",
        refreshes_since="481",
        refresh="from 481",
        default_scope="catalog",
        tested="`make test-engines`: writes and reads with OAuth2 and vended credentials, in Trino 483",
        advice=(
            "the folder is `etc/catalog` of coordinator and workers; restart Trino to load it",
            "SHOW SCHEMAS with OAuth2 and nested namespaces works from Trino 482",
        ),
    ),
    list_problems=_list_reserved_names,
)
