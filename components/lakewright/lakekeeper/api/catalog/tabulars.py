"""Calls about tables, views and generic tables, including soft-deleted objects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog import namespaces
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError, UnsupportedServerError
from lakewright.lakekeeper.api.connection.paging import pages

Kind = Literal["table", "view", "generic-table"]


@dataclass(frozen=True, order=True)
class Tabular:
    """A table, a view or a generic table."""

    namespace: namespaces.Path
    name: str
    kind: Kind = "table"
    tabular_id: str = ""
    protected: bool = False
    dropped: bool = False
    """Soft-deleted: no longer listed, but its files still exist."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return ".".join((*self.namespace, self.name))


def live(client: Client, warehouse_id: str, namespace: namespaces.Path) -> list[Tabular]:
    """Return the tables, views and generic tables of one namespace."""
    kinds: list[Kind] = ["table", "view"]
    if client.server().has("generic-table"):
        kinds.append("generic-table")
    return [tabular for kind in kinds for tabular in list_kind(client, warehouse_id, namespace, kind)]


def ids(client: Client, warehouse_id: str, namespace: namespaces.Path, kind: Kind) -> dict[str, str]:
    """Return ids by lower-case name for one kind in one namespace; empty if the namespace does not exist."""
    try:
        return {
            tabular.name.casefold(): tabular.tabular_id for tabular in list_kind(client, warehouse_id, namespace, kind)
        }
    except NotFoundError:
        return {}


def list_kind(client: Client, warehouse_id: str, namespace: namespaces.Path, kind: Kind) -> Iterator[Tabular]:
    """Yield the objects of one kind in one namespace.

    Raises:
        NotFoundError: The namespace does not exist.
    """
    path = _url(warehouse_id, namespace, kind)
    if kind == "generic-table":
        for page in pages(client, path):
            for identifier in cast(list[dict[str, Any]], page["identifiers"]):
                identifiers = Tabular(
                    tuple(identifier["namespace"]), identifier["name"], kind, str(identifier.get("id") or "")
                )
                yield replace(identifiers, protected=_is_protected(client, warehouse_id, identifiers))
        return
    for page in pages(client, path, {"returnUuids": True, "returnProtectionStatus": True}):
        identifiers = cast(list[dict[str, Any]], page["identifiers"])
        ids = cast(list[str], page.get("table-uuids") or page.get("view-uuids") or [""] * len(identifiers))
        protection = cast(list[bool], page.get("protection-status") or [False] * len(identifiers))
        for identifier, tabular_id, protected in zip(identifiers, ids, protection, strict=True):
            yield Tabular(tuple(identifier["namespace"]), identifier["name"], kind, tabular_id, protected)


def list_deleted(client: Client, warehouse_id: str) -> list[dict[str, Any]]:
    """Return the soft-deleted tables and views of an active warehouse, as the server returns them."""
    path = f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars"
    return [tabular for page in pages(client, path) for tabular in cast(list[dict[str, Any]], page["tabulars"])]


def list_dropped(client: Client, warehouse_id: str) -> list[Tabular]:
    """Return the soft-deleted tables and views of a warehouse."""
    return [
        Tabular(
            tuple(tabular["namespace"]), tabular["name"], tabular.get("typ") or "table", tabular["id"], dropped=True
        )
        for tabular in list_deleted(client, warehouse_id)
    ]


def drop(client: Client, warehouse_id: str, tabular: Tabular, *, purge: bool = True) -> None:
    """Drop a table or view without soft deletion. With `purge`, the server deletes its files."""
    path = f"{_url(warehouse_id, tabular.namespace, tabular.kind)}/{quote(tabular.name, safe='')}"
    # Both parameters are explicit: the server's default for purging is the opposite of the Iceberg specification's.
    client.call("DELETE", path, params={"purgeRequested": purge, "force": True})


def undrop(client: Client, warehouse_id: str, tabular: Tabular) -> None:
    """Restore a soft-deleted table or view. This ends its expiration task."""
    target = {"type": tabular.kind, "id": tabular.tabular_id}
    client.call("POST", f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars/undrop", body={"targets": [target]})


def refuse_move(client: Client, title: str, source: namespaces.Path, destination: namespaces.Path, advice: str) -> None:
    """Refuse to move a table or view to another namespace of a server with OpenFGA.

    Lakekeeper 0.11 to 0.14 writes the parent of an object to OpenFGA at its creation only.

    Args:
        client: Client of the server.
        title: Name of the table or view for messages.
        source: Its namespace.
        destination: The namespace that it would move to.
        advice: Last sentence of the message.

    Raises:
        UnsupportedServerError: The server authorizes by OpenFGA.
    """
    if client.server().keeps_tuples:
        source_name, destination_name = ".".join(source), ".".join(destination)
        raise UnsupportedServerError(
            f"{title} cannot be moved to namespace `{destination_name}`: the server authorizes by OpenFGA, in which the"
            f" grants on `{source_name}` would still apply to it, and the grants on `{destination_name}` would not."
            f" {advice}"
        )


def _url(warehouse_id: str, namespace: namespaces.Path, kind: Kind) -> str:
    inside = namespaces.url(warehouse_id, namespace)
    if kind == "generic-table":  # not part of the Iceberg REST catalog, so not under its root
        inside = inside.replace("/catalog/", "/lakekeeper/", 1)
    return f"{inside}/{kind}s"


def _is_protected(client: Client, warehouse_id: str, tabular: Tabular) -> bool:
    """Return whether a generic table is protected, which their list does not report."""
    path = f"/management/v1/warehouse/{warehouse_id}/{tabular.kind}/{tabular.tabular_id}/protection"
    return bool(client.json("GET", path)["protected"])
