"""The formats by name. A new format is a file of this folder and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewright.config_formats.config_format import ConfigFormat

    FormatName = str

FORMATS: Mapping[str, str] = {
    "json": "json_document",
    "spark": "spark_defaults",
    "pyiceberg": "pyiceberg_yaml",
    "env": "shell_exports",
    "texera": "texera_variables",
    "trino": "trino_catalog",
    "flink": "flink_sql",
    "duckdb": "duckdb_sql",
    "starrocks": "starrocks_sql",
    "doris": "doris_sql",
    "clickhouse": "clickhouse_sql",
    "snowflake": "snowflake_sql",
    "dremio": "dremio_source",
    "dbt": "dbt_project",
    "polars": "polars_script",
    "daft": "daft_script",
}
"""File of this folder by the name of its format. `--help` lists the names without loading the files."""

if not TYPE_CHECKING:
    # Typer offers the members of an enum; type checkers do not evaluate members that are computed.
    FormatName = StrEnum("FormatName", {name: name for name in FORMATS})


def load_format(name: FormatName) -> ConfigFormat:
    """Return the format of a name. Raises KeyError for an unknown name."""
    return import_module(f"{__package__}.{FORMATS[name]}").FORMAT
