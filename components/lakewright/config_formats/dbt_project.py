"""Format `dbt`: a profile and macros for dbt-duckdb, or for the Fusion engine (dbt 2) a profile and `catalogs.yml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.duckdb_names import list_reserved_names, quote_if_needed
from lakewright.config_formats.properties import Meaning, select_properties
from lakewright.config_formats.values import SecretSyntax, describe_variables, gather_values
from lakewright.config_formats.versions import is_at_least

_SYNTAX = SecretSyntax(lambda variable: "{{ env_var('" + variable + "') }}")
FUSION = "2.0"
"""First version of dbt with `catalogs.yml` for DuckDB."""
MACROS = "lakekeeper_macros.sql"
_MACROS = """\
{# DuckDB has no DROP ... CASCADE for Iceberg tables. #}
{% macro duckdb__drop_relation(relation) -%}
  {%- set cascade = relation.database not in WAREHOUSES and not adapter.is_ducklake(relation) -%}
  {%- call statement('drop_relation', auto_begin=False) -%}
    drop {{ relation.type }} if exists {{ relation }} {{ 'cascade' if cascade }}
  {%- endcall -%}
{%- endmacro %}

{# The schema of a model in a warehouse is the name of the namespace, without a prefix. #}
{% macro generate_schema_name(custom_schema_name, node) -%}
  {%- if custom_schema_name is not none and node.database in WAREHOUSES -%}
    {{ custom_schema_name | trim }}
  {%- else -%}
    {{ dbt.default__generate_schema_name(custom_schema_name, node) }}
  {%- endif -%}
{%- endmacro %}
"""
_SECRET = "lakekeeper"  # noqa: S105 - a name
_DUCKDB = "1.5"
"""DuckDB in dbt-duckdb 1.11."""


def _render_files(request: ConfigRequest) -> dict[str, str]:
    config = request.config
    values_by_name = {warehouse.name: gather_values(config, warehouse, _SYNTAX) for warehouse in config.warehouses}
    # The warehouses share a client, and thus a secret.
    secret: dict[str, str] = {}
    for values in values_by_name.values():
        secret = select_properties("duckdb secret", _DUCKDB, values)
    output: dict[str, Any] = {"type": "duckdb", "extensions": ["httpfs", "iceberg"], "secrets": []}
    if secret:
        lower = {name.lower(): value for name, value in secret.items()}
        output["secrets"] = [{"type": "iceberg", "name": _SECRET, **lower}]
    reference = {"secret": _SECRET} if secret else {}
    profile = {config.tenant: {"target": "lakekeeper", "outputs": {"lakekeeper": output}}}
    if is_at_least(request.version, FUSION):
        catalogs = [_describe_catalog(request, *item, reference) for item in values_by_name.items()]
        return {
            "profiles.yml": _dump(profile),
            "catalogs.yml": _dump({"catalogs": catalogs}),
            "dbt_project.part.yml": _dump({"flags": {"use_catalogs_v2": True}}),
        }
    # A transaction cannot rename an Iceberg table that it created, as dbt does.
    output["disable_transactions"] = True
    output["attach"] = [_describe_attachment(*item, reference) for item in values_by_name.items()]
    return {"profiles.yml": _dump(profile), MACROS: _MACROS.replace("WAREHOUSES", repr([*values_by_name]))}


def _describe_attachment(name: str, values: Mapping[Meaning, str], reference: Mapping[str, str]) -> dict[str, Any]:
    options = _convert_flags(select_properties("duckdb attach", _DUCKDB, values))
    options = {option.lower(): value for option, value in options.items()}
    if not reference:
        options["authorization_type"] = "none"
    # dbt-duckdb puts the alias into its SQL as it is.
    alias = quote_if_needed(name)
    return {"path": values[Meaning.WAREHOUSE], "alias": alias, "type": "iceberg", **reference, "options": options}


def _describe_catalog(
    request: ConfigRequest, name: str, values: Mapping[Meaning, str], reference: Mapping[str, str]
) -> dict[str, Any]:
    catalog = _convert_flags(select_properties("dbt catalog", request.version, values))
    authorization = reference or {"authorization_type": "NONE"}
    duckdb = {"duckdb": {**catalog, **authorization}}
    return {"name": name, "type": "iceberg_rest", "table_format": "iceberg", "config": duckdb}


def _convert_flags(properties: Mapping[str, str]) -> dict[str, Any]:
    return {name: True if value == "true" else value for name, value in properties.items()}


def _dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=120)


def _describe_omissions(request: ConfigRequest) -> tuple[str, ...]:
    notes = list(describe_variables(request.config, _SYNTAX))
    if is_at_least(request.version, FUSION):
        notes.append("merge dbt_project.part.yml into your dbt_project.yml")
    else:
        notes.append(f"copy {MACROS} into the folder `macros` of your project")
    return tuple(notes)


FORMAT = ConfigFormat(
    _render_files,
    _describe_omissions,
    EngineFacts(
        title="dbt",
        version="1.11",
        secrets="`{{ env_var('NAME') }}`",
        refreshes_since=None,
        refresh="no, as DuckDB",
        default_scope="PRINCIPAL_ROLE:ALL",
        tested="`make test-engines`: dbt-duckdb writes, replaces and reads with OAuth2 and vended credentials",
        advice=(
            "version 1 is dbt-duckdb, version 2 the Fusion engine; for dbt-trino, use the files of --format trino",
            "models name their database, and are tables:"
            " {{ config(database='WAREHOUSE', schema='NAMESPACE', materialized='table') }}",
            "dbt replaces a table of a warehouse in several steps; readers may find none in between",
        ),
    ),
    list_problems=list_reserved_names,
)
