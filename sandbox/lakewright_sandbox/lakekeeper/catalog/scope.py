"""What a catalog request is about: warehouse, namespace, tabular, and the server's address as the client sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database.models import Namespace, Tabular
from ..protocol.errors import ApiError, namespace_missing, tabular_missing

SEPARATOR = "\x1f"


async def warehouse_of(prefix: str) -> str:
    """The catalog's prefix is the warehouse's UUID."""
    try:
        return str(UUID(prefix))
    except ValueError:
        message = f"Warehouse ID must be a UUID, found `{prefix}`. GET /config answers the prefix to use."
        raise ApiError(400, "WarehouseIdIsNotUUID", message) from None


def namespace_of(namespace: str) -> tuple[str, ...]:
    """The parts of a namespace in a path; a plus stands for a space there."""
    return tuple(namespace.replace("+", " ").split(SEPARATOR))


async def namespace_path(namespace: str) -> tuple[str, ...]:
    return namespace_of(namespace)


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


def path_key(path: Sequence[str]) -> str:
    return SEPARATOR.join(part.casefold() for part in path)


def find_namespace(session: Session, warehouse_id: str, path: Sequence[str]) -> Namespace:
    """Raises 404 `NoSuchNamespaceException`."""
    query = select(Namespace).where(Namespace.warehouse_id == warehouse_id, Namespace.path_key == path_key(path))
    namespace = session.scalars(query).first()
    if namespace is None:
        raise namespace_missing(".".join(path), warehouse_id)
    return namespace


def find_tabular(session: Session, namespace: Namespace, name: str, kind: str, *, staged: bool = False) -> Tabular:
    """The live table or view; staged tables only where asked for. Raises 404."""
    tabular = tabular_named(session, namespace, name)
    if tabular is None or tabular.kind != kind or (tabular.metadata_location is None and not staged):
        raise tabular_missing(kind)
    return tabular


def tabular_named(session: Session, namespace: Namespace, name: str) -> Tabular | None:
    query = select(Tabular).where(
        Tabular.namespace_id == namespace.id, Tabular.name_key == name.casefold(), Tabular.deleted_at.is_(None)
    )
    return session.scalars(query).first()
