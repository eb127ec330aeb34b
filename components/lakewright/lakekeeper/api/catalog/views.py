"""Calls about views: calls of the Iceberg REST catalog."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog import namespaces
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.catalog.tables import NO_CREDENTIALS
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

ViewMetadata = dict[str, Any]
"""A view's metadata in the format of the Iceberg view specification."""


def create(client: Client, warehouse_id: str, namespace: Path, body: dict[str, Any]) -> ViewMetadata:
    """Create a view in an existing namespace. The server writes its first metadata file."""
    path = f"{namespaces.url(warehouse_id, namespace)}/views"
    return client.json("POST", path, body=body, headers=NO_CREDENTIALS, idempotent=False)["metadata"]


def load(client: Client, warehouse_id: str, namespace: Path, name: str) -> ViewMetadata | None:
    """Return a view's metadata; None if the view does not exist or is hidden."""
    try:
        return client.json("GET", _url(warehouse_id, namespace, name), headers=NO_CREDENTIALS)["metadata"]
    except NotFoundError:
        return None


def commit(client: Client, warehouse_id: str, namespace: Path, name: str, body: dict[str, Any]) -> ViewMetadata:
    """Commit changes to a view if all requirements hold."""
    path = _url(warehouse_id, namespace, name)
    return client.json("POST", path, body=body, headers=NO_CREDENTIALS, idempotent=False)["metadata"]


def rename(client: Client, warehouse_id: str, source: tuple[Path, str], destination: tuple[Path, str]) -> None:
    """Rename a view, or move it to another namespace of its warehouse."""
    body = {
        "source": {"namespace": list(source[0]), "name": source[1]},
        "destination": {"namespace": list(destination[0]), "name": destination[1]},
    }
    client.call("POST", f"/catalog/v1/{warehouse_id}/views/rename", body=body, idempotent=False)


def _url(warehouse_id: str, namespace: Path, name: str) -> str:
    return f"{namespaces.url(warehouse_id, namespace)}/views/{quote(name, safe='')}"
