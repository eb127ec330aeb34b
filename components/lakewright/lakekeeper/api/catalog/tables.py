"""Calls about tables: calls of the Iceberg REST catalog, and Lakekeeper's protection of tables and views."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog import namespaces
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

Metadata = dict[str, Any]
"""A table's metadata in the format of the Iceberg table specification."""

ProtectedKind = Literal["table", "view"]
"""Kinds of objects whose protection is read and set by the same calls."""

NO_CREDENTIALS = {"X-Iceberg-Access-Delegation": "client-managed"}
"""Disables vended credentials: this client reads no files, and the server then requests no credentials."""


def url(warehouse_id: str, namespace: Path, name: str) -> str:
    """Return the URL path of a table."""
    return f"{namespaces.url(warehouse_id, namespace)}/tables/{quote(name, safe='')}"


def create(client: Client, warehouse_id: str, namespace: Path, body: dict[str, Any]) -> Metadata:
    """Create a table in an existing namespace. The server writes its first metadata file."""
    path = f"{namespaces.url(warehouse_id, namespace)}/tables"
    return client.json("POST", path, body=body, headers=NO_CREDENTIALS, idempotent=False)["metadata"]


def load(client: Client, warehouse_id: str, namespace: Path, name: str) -> Metadata | None:
    """Return a table's metadata with its referenced snapshots only; None if the table does not exist or is hidden."""
    path = url(warehouse_id, namespace, name)
    try:
        return client.json("GET", path, params={"snapshots": "refs"}, headers=NO_CREDENTIALS)["metadata"]
    except NotFoundError:
        return None


def commit(client: Client, warehouse_id: str, namespace: Path, name: str, body: dict[str, Any]) -> Metadata:
    """Commit changes to a table if all requirements hold. Never sent twice.

    Raises:
        ConflictError: A requirement does not hold; nothing was applied.
    """
    path = url(warehouse_id, namespace, name)
    return client.json("POST", path, body=body, headers=NO_CREDENTIALS, idempotent=False)["metadata"]


def rename(client: Client, warehouse_id: str, source: tuple[Path, str], destination: tuple[Path, str]) -> None:
    """Rename a table, or move it to another namespace of its warehouse. Its files are not moved."""
    body = {
        "source": {"namespace": list(source[0]), "name": source[1]},
        "destination": {"namespace": list(destination[0]), "name": destination[1]},
    }
    client.call("POST", f"/catalog/v1/{warehouse_id}/tables/rename", body=body, idempotent=False)


def is_protected(client: Client, warehouse_id: str, tabular_id: str, kind: ProtectedKind = "table") -> bool:
    """Return whether a table or view is protected from being dropped."""
    return bool(client.json("GET", _protection(warehouse_id, tabular_id, kind))["protected"])


def protect(
    client: Client, warehouse_id: str, tabular_id: str, kind: ProtectedKind = "table", *, protected: bool
) -> None:
    """Set or remove the protection of a table or view from being dropped."""
    client.call("POST", _protection(warehouse_id, tabular_id, kind), body={"protected": protected})


def _protection(warehouse_id: str, tabular_id: str, kind: ProtectedKind) -> str:
    return f"/management/v1/warehouse/{warehouse_id}/{kind}/{tabular_id}/protection"
