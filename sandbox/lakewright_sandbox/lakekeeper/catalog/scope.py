"""Path parameters of catalog requests, and the server's address as the client uses it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from lakewright_sandbox.lakekeeper.database.lookups import parse_namespace
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.settings import Settings


async def parse_warehouse(prefix: str) -> str:
    """Return the warehouse's id, which is the catalog's prefix."""
    try:
        return str(UUID(prefix))
    except ValueError:
        message = f"Warehouse ID must be a UUID, found `{prefix}`. GET /config returns the prefix to use."
        raise ApiError(400, "WarehouseIdIsNotUUID", message) from None


async def namespace_path(namespace: str) -> tuple[str, ...]:
    """Return the parts of a namespace in a path."""
    return parse_namespace(namespace)


async def base_uri(request: Request) -> str:
    """Return the server's address: its setting, else from the forwarding headers, else from the Host header."""
    settings: Settings = request.app.state.lakekeeper.settings
    if settings.base_uri:
        return settings.base_uri
    headers = request.headers
    scheme = headers.get("x-forwarded-proto") or request.url.scheme
    host = headers.get("x-forwarded-host") or headers.get("host") or request.url.netloc
    port = headers.get("x-forwarded-port")
    if port and ":" not in host:
        host = f"{host}:{port}"
    return f"{scheme}://{host}{headers.get('x-forwarded-prefix', '').rstrip('/')}"


WarehouseId = Annotated[str, Depends(parse_warehouse)]
NamespacePath = Annotated[tuple[str, ...], Depends(namespace_path)]
BaseUri = Annotated[str, Depends(base_uri)]
