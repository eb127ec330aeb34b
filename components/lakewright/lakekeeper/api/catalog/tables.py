"""Calls about tables: the Iceberg REST catalog's, and the protection that Lakekeeper adds."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog import namespaces
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

Metadata = dict[str, Any]
"""A table's metadata as the Iceberg table specification has it."""

NO_CREDENTIALS = {"X-Iceberg-Access-Delegation": "client-managed"}
"""Who reads no files needs no credentials for them, and the server asks nobody for any."""


def url(warehouse_id: str, namespace: Path, name: str) -> str:
    """Path of a table."""
    return f"{namespaces.url(warehouse_id, namespace)}/tables/{quote(name, safe='')}"


def create(client: Client, warehouse_id: str, namespace: Path, body: dict[str, Any]) -> Metadata:
    """Create a table in a namespace that is there; the server writes its first metadata file."""
    path = f"{namespaces.url(warehouse_id, namespace)}/tables"
    return client.json("POST", path, body=body, headers=NO_CREDENTIALS, idempotent=False)["metadata"]


def load(client: Client, warehouse_id: str, namespace: Path, name: str) -> Metadata | None:
    """A table's metadata, with the snapshots that have a name alone; None if there is no such table to be seen."""
    path = url(warehouse_id, namespace, name)
    try:
        return client.json("GET", path, params={"snapshots": "refs"}, headers=NO_CREDENTIALS)["metadata"]
    except NotFoundError:
        return None


def commit(client: Client, warehouse_id: str, namespace: Path, name: str, body: dict[str, Any]) -> Metadata:
    """Change a table if all requirements hold, else nothing of it. Raises ConflictError; never sent twice."""
    path = url(warehouse_id, namespace, name)
    return client.json("POST", path, body=body, headers=NO_CREDENTIALS, idempotent=False)["metadata"]


def rename(client: Client, warehouse_id: str, source: tuple[Path, str], destination: tuple[Path, str]) -> None:
    """Give a table another name, or another namespace of its warehouse; its files stay where they are."""
    body = {
        "source": {"namespace": list(source[0]), "name": source[1]},
        "destination": {"namespace": list(destination[0]), "name": destination[1]},
    }
    client.call("POST", f"/catalog/v1/{warehouse_id}/tables/rename", body=body, idempotent=False)


def is_protected(client: Client, warehouse_id: str, tabular_id: str, kind: Literal["table", "view"] = "table") -> bool:
    """Whether a table or view is protected from being dropped."""
    return bool(client.json("GET", _protection(warehouse_id, tabular_id, kind))["protected"])


def protect(client: Client, warehouse_id: str, table_id: str, *, protected: bool) -> None:
    """Protect a table from being dropped, or no longer."""
    client.call("POST", _protection(warehouse_id, table_id), body={"protected": protected})


def _protection(warehouse_id: str, tabular_id: str, kind: str = "table") -> str:
    return f"/management/v1/warehouse/{warehouse_id}/{kind}/{tabular_id}/protection"
