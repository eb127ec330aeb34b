"""Calls about tables, views and generic tables, dropped ones included."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog import namespaces
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
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
    """Soft-deleted: gone from listings, its files still there."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return ".".join((*self.namespace, self.name))


def live(client: Client, warehouse_id: str, namespace: namespaces.Path) -> list[Tabular]:
    """Tables, views and generic tables of one namespace."""
    kinds: list[Kind] = ["table", "view"]
    if client.server().has("generic-table"):
        kinds.append("generic-table")
    return [one for kind in kinds for one in listed(client, warehouse_id, namespace, kind)]


def ids(client: Client, warehouse_id: str, namespace: namespaces.Path, kind: Kind) -> dict[str, str]:
    """Ids of what of one kind is in one namespace by names in lower case; none if there is no namespace."""
    try:
        return {one.name.casefold(): one.tabular_id for one in listed(client, warehouse_id, namespace, kind)}
    except NotFoundError:
        return {}


def listed(client: Client, warehouse_id: str, namespace: namespaces.Path, kind: Kind) -> Iterator[Tabular]:
    """What of one kind is in one namespace. Raises NotFoundError if that is not there."""
    path = _url(warehouse_id, namespace, kind)
    if kind == "generic-table":
        for page in pages(client, path):
            for one in cast(list[dict[str, Any]], page["identifiers"]):
                found = Tabular(tuple(one["namespace"]), one["name"], kind, str(one.get("id") or ""))
                yield replace(found, protected=_is_protected(client, warehouse_id, found))
        return
    for page in pages(client, path, {"returnUuids": True, "returnProtectionStatus": True}):
        found = cast(list[dict[str, Any]], page["identifiers"])
        ids = cast(list[str], page.get("table-uuids") or page.get("view-uuids") or [""] * len(found))
        protection = cast(list[bool], page.get("protection-status") or [False] * len(found))
        for one, tabular_id, protected in zip(found, ids, protection, strict=True):
            yield Tabular(tuple(one["namespace"]), one["name"], kind, tabular_id, protected)


def deleted(client: Client, warehouse_id: str) -> list[dict[str, Any]]:
    """Soft-deleted tables and views of an active warehouse, as the server answers them."""
    path = f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars"
    return [one for page in pages(client, path) for one in cast(list[dict[str, Any]], page["tabulars"])]


def dropped(client: Client, warehouse_id: str) -> list[Tabular]:
    """Soft-deleted tables and views of a warehouse."""
    return [
        Tabular(tuple(one["namespace"]), one["name"], one.get("typ") or "table", one["id"], dropped=True)
        for one in deleted(client, warehouse_id)
    ]


def drop(client: Client, warehouse_id: str, tabular: Tabular) -> None:
    """Drop a table or view at once, soft deletion or not, and have its files removed."""
    path = f"{_url(warehouse_id, tabular.namespace, tabular.kind)}/{quote(tabular.name, safe='')}"
    # Both are said outright: the server's default for purging is the opposite of the Iceberg specification's.
    client.call("DELETE", path, params={"purgeRequested": True, "force": True})


def undrop(client: Client, warehouse_id: str, tabular: Tabular) -> None:
    """Bring a soft-deleted table or view back; its task ends."""
    target = {"type": tabular.kind, "id": tabular.tabular_id}
    client.call("POST", f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars/undrop", body={"targets": [target]})


def _url(warehouse_id: str, namespace: namespaces.Path, kind: Kind) -> str:
    inside = namespaces.url(warehouse_id, namespace)
    if kind == "generic-table":  # no Iceberg, and so not under the catalog's root
        inside = inside.replace("/catalog/", "/lakekeeper/", 1)
    return f"{inside}/{kind}s"


def _is_protected(client: Client, warehouse_id: str, one: Tabular) -> bool:
    """What the list of generic tables does not tell."""
    path = f"/management/v1/warehouse/{warehouse_id}/{one.kind}/{one.tabular_id}/protection"
    return bool(client.json("GET", path)["protected"])
