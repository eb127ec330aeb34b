"""Format `dremio`: a source for each warehouse, as Dremio's REST API (`POST /api/v3/catalog`) takes it."""

from __future__ import annotations

import json

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import select_properties
from lakewright.config_formats.values import SHELL, describe_variables, gather_values


def _render_sources(request: ConfigRequest) -> dict[str, str]:
    files: dict[str, str] = {}
    for warehouse in request.config.warehouses:
        values = gather_values(request.config, warehouse, SHELL)
        source = {
            "entityType": "source",
            "name": warehouse.name,
            "type": "RESTCATALOG",
            "config": {
                "restEndpointUri": request.config.uri,
                "isUsingVendedCredentials": True,
                "propertyList": _list_entries(select_properties("dremio", request.version, values)),
                "secretPropertyList": _list_entries(select_properties("dremio secret", request.version, values)),
            },
        }
        files[f"{warehouse.name}.json"] = json.dumps(source, indent=2) + "\n"
    return files


def _list_entries(properties: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in properties.items()]


def _describe_omissions(request: ConfigRequest) -> tuple[str, ...]:
    command = 'envsubst < NAME.json | curl --json @- -H "Authorization: Bearer $DREMIO_TOKEN" URL/api/v3/catalog'
    return (*describe_variables(request.config, SHELL), f"create the source with the secret filled in: {command}")


FORMAT = ConfigFormat(
    _render_sources,
    _describe_omissions,
    EngineFacts(
        title="Dremio",
        version="26.0",
        secrets="`${NAME}`, which `envsubst` fills in",
        refreshes_since=None,
        refresh="not known, so no",
        default_scope="catalog",
        tested="properties compared with the documentation",
        advice=("the state `good` of a source proves the catalog only; select from a table to prove the storage",),
    ),
    comment="",
)
