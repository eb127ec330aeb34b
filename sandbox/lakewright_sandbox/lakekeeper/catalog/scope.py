"""What a catalog request is about: warehouse, namespace, tabular, and the server's address as the client sees it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from ..database.lookups import parse_namespace
from ..protocol.errors import ApiError


async def warehouse_of(prefix: str) -> str:
    """The catalog's prefix is the warehouse's UUID."""
    try:
        return str(UUID(prefix))
    except ValueError:
        message = f"Warehouse ID must be a UUID, found `{prefix}`. GET /config answers the prefix to use."
        raise ApiError(400, "WarehouseIdIsNotUUID", message) from None


async def namespace_path(namespace: str) -> tuple[str, ...]:
    return parse_namespace(namespace)


async def base_uri(request: Request) -> str:
    """The server's own address: from the forwarding headers where there are some, else the Host header."""
    headers = request.headers
    scheme = headers.get("x-forwarded-proto") or request.url.scheme
    host = headers.get("x-forwarded-host") or headers.get("host") or request.url.netloc
    port = headers.get("x-forwarded-port")
    if port and ":" not in host:
        host = f"{host}:{port}"
    return f"{scheme}://{host}{headers.get('x-forwarded-prefix', '').rstrip('/')}"


WarehouseId = Annotated[str, Depends(warehouse_of)]
NamespacePath = Annotated[tuple[str, ...], Depends(namespace_path)]
BaseUri = Annotated[str, Depends(base_uri)]
