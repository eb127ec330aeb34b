"""`GET /config`: the catalog's address and defaults for clients."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.catalog.scope import BaseUri
from lakewright_sandbox.lakekeeper.database.models import UserRow, WarehouseRow
from lakewright_sandbox.lakekeeper.database.users import UserDetails, provision
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Caller, TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import PROJECT_ID, Lakekeeper, ProjectId, Server

NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
ENDPOINTS = [
    "GET /v1/config",
    "GET /v1/{prefix}/namespaces",
    f"HEAD {NAMESPACE}",
    "POST /v1/{prefix}/namespaces",
    f"GET {NAMESPACE}",
    f"DELETE {NAMESPACE}",
    f"POST {NAMESPACE}/properties",
    f"GET {NAMESPACE}/tables",
    f"POST {NAMESPACE}/tables",
    f"GET {NAMESPACE}/tables/{{table}}",
    f"POST {NAMESPACE}/tables/{{table}}",
    f"DELETE {NAMESPACE}/tables/{{table}}",
    f"HEAD {NAMESPACE}/tables/{{table}}",
    f"GET {NAMESPACE}/tables/{{table}}/credentials",
    "POST /v1/{prefix}/tables/rename",
    f"POST {NAMESPACE}/register",
    f"POST {NAMESPACE}/tables/{{table}}/metrics",
    "POST /v1/{prefix}/transactions/commit",
    f"POST {NAMESPACE}/views",
    f"GET {NAMESPACE}/views",
    f"GET {NAMESPACE}/views/{{view}}",
    f"POST {NAMESPACE}/views/{{view}}",
    f"DELETE {NAMESPACE}/views/{{view}}",
    f"HEAD {NAMESPACE}/views/{{view}}",
    "POST /v1/{prefix}/views/rename",
]

router = APIRouter(prefix="/catalog/v1")


@router.get("/config")
def get_config(
    server: Server, caller: Caller, project: ProjectId, base: BaseUri, warehouse: str | None = None
) -> Response:
    """Return the configuration of a warehouse's clients; register a caller who is not a user yet."""
    if not warehouse:
        message = "No warehouse specified. Please specify the 'warehouse' parameter in the GET /config request."
        raise ApiError(400, "GetConfigNoWarehouseProvided", message)
    head, slash, name_in_project = warehouse.partition("/")
    project, name = (head, name_in_project) if slash and PROJECT_ID.fullmatch(head) else (project, warehouse)
    query = select(WarehouseRow).where(WarehouseRow.project_id == project, WarehouseRow.name_key == name.casefold())
    with server.database.read() as session:
        warehouse_row = session.scalars(query).first()
    if warehouse_row is None or not server.statuses.is_active(warehouse_row):
        raise ApiError(404, "NoSuchWarehouseException", f"A warehouse '{name}' does not exist")
    if caller is not None:
        _provision(server, caller)
    lifetime = {"idempotency-key-lifetime": f"PT{server.settings.idempotency_seconds // 60}M"}
    has_field, has_override = server.settings.is_at_least("0.14"), server.settings.is_at_least("0.12")
    return json_response(
        {
            "overrides": {"uri": f"{base}/catalog", **(lifetime if has_override and not has_field else {})},
            "defaults": _defaults(server, warehouse_row),
            "endpoints": ENDPOINTS,
            **(lifetime if has_field else {}),
        }
    )


def _provision(server: Lakekeeper, caller: TokenPrincipal) -> None:
    """Register a new caller. From 0.13 on a deleted user remains deleted."""
    with server.database.read() as session:
        user = session.get(UserRow, caller.id)
    if user is None or (user.deleted_at is not None and not server.settings.is_at_least("0.13")):
        with server.database.write() as session:
            provision(server, session, caller, UserDetails(), "config-call-creation")


def _defaults(server: Lakekeeper, warehouse: WarehouseRow) -> dict[str, Any]:
    profile = warehouse.storage_profile
    defaults = {"prefix": warehouse.id, "rest-page-size": str(server.settings.page_size_default)}
    if warehouse.delete_profile["type"] == "soft" and profile.get("push-s3-delete-disabled"):
        defaults["s3.delete-enabled"] = "false"
    if profile.get("aws-kms-key-arn") and server.settings.is_at_least("0.13"):
        defaults |= {"s3.sse.type": "kms", "s3.sse.key": profile["aws-kms-key-arn"]}
    return defaults
