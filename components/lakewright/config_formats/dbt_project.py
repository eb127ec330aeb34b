"""Format `dbt`: a profile of dbt-duckdb, or for the Fusion engine (dbt 2) a profile and `catalogs.yml`."""

from __future__ import annotations

from typing import Any

import yaml

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import Meaning, select_properties
from lakewright.config_formats.values import SecretSyntax, describe_variables, gather_values
from lakewright.config_formats.versions import is_at_least

_SYNTAX = SecretSyntax(lambda variable: "{{ env_var('" + variable + "') }}")
FUSION = "2.0"
"""First version of dbt with `catalogs.yml` for DuckDB."""
_DUCKDB = "1.5"
"""DuckDB in dbt-duckdb 1.11."""


def _render_files(request: ConfigRequest) -> dict[str, str]:
    config, fusion = request.config, is_at_least(request.version, FUSION)
    secrets: list[dict[str, Any]] = []
    attachments: list[dict[str, Any]] = []
    catalogs: list[dict[str, Any]] = []
    for warehouse in config.warehouses:
        values = gather_values(config, warehouse, _SYNTAX)
        secret = select_properties("duckdb secret", _DUCKDB, values)
        if secret:
            lower = {name.lower(): value for name, value in secret.items()}
            secrets.append({"type": "iceberg", "name": warehouse.name, **lower})
        options: dict[str, Any] = {
            name.lower(): True if value == "true" else value
            for name, value in select_properties("duckdb attach", _DUCKDB, values).items()
        }
        if not secret:
            options["authorization_type"] = "none"
        attachment = {"path": values[Meaning.WAREHOUSE], "alias": warehouse.name, "type": "iceberg"}
        attachments.append({**attachment, **({"secret": warehouse.name} if secret else {}), "options": options})
        catalog: dict[str, Any] = {
            name: True if value == "true" else value
            for name, value in select_properties("dbt catalog", request.version, values).items()
        }
        catalogs.append(
            {
                "name": warehouse.name,
                "type": "iceberg_rest",
                "table_format": "iceberg",
                "config": {"duckdb": catalog | ({"secret": warehouse.name} if secret else {})},
            }
        )
    output: dict[str, Any] = {"type": "duckdb", "extensions": ["httpfs", "iceberg"], "secrets": secrets}
    if not fusion:
        output["attach"] = attachments
    profile = {config.tenant: {"target": "lakekeeper", "outputs": {"lakekeeper": output}}}
    files = {"profiles.yml": _dump(profile)}
    if fusion:
        files["catalogs.yml"] = _dump({"catalogs": catalogs})
        files["dbt_project.part.yml"] = _dump({"flags": {"use_catalogs_v2": True}})
    return files


def _dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=120)


def _describe_omissions(request: ConfigRequest) -> tuple[str, ...]:
    notes = list(describe_variables(request.config, _SYNTAX))
    if is_at_least(request.version, FUSION):
        notes.append("merge dbt_project.part.yml into your dbt_project.yml")
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
        tested="properties compared with the documentation",
        advice=(
            "version 1 is dbt-duckdb, version 2 the Fusion engine; for dbt-trino, use the files of --format trino",
            "models name their database: {{ config(database='WAREHOUSE', schema='NAMESPACE') }}",
        ),
    ),
)
