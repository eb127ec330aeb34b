"""Calls about tables and views, dropped ones included."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import quote

from lakewright.lakekeeper.api import namespaces
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import NotFound
from lakewright.lakekeeper.api.paging import BY_PAGE, pages

Kind = Literal["table", "view", "generic-table"]


@dataclass(frozen=True, order=True)
class Tabular:
    """A table or view."""

    namespace: namespaces.Path
    name: str
    kind: Kind = "table"
    tabular_id: str = ""
    protected: bool = False
    dropped: bool = False
    """Soft-deleted: gone from listings, its files still there."""

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def live(client: Client, warehouse_id: str, namespace: namespaces.Path) -> list[Tabular]:
    """Tables and views of one namespace."""
    return [
        *listed(client, warehouse_id, namespace, "table"),
        *listed(client, warehouse_id, namespace, "view"),
    ]


def ids(
    client: Client, warehouse_id: str, namespace: namespaces.Path, kind: Literal["table", "view"]
) -> dict[str, str]:
    """Ids of the tables, or views, of one namespace by names in lower case; none if there is no namespace."""
    try:
        return {one.name.casefold(): one.tabular_id for one in listed(client, warehouse_id, namespace, kind)}
    except NotFound:
        return {}


def listed(
    client: Client, warehouse_id: str, namespace: namespaces.Path, kind: Literal["table", "view"]
) -> Iterator[Tabular]:
    """Tables, or views, of one namespace. Raises NotFound if it is not there."""
    path = f"{namespaces.url(warehouse_id, namespace)}/{kind}s"
    for page in pages(client, path, {**BY_PAGE, "returnUuids": True, "returnProtectionStatus": True}):
        found = cast(list[dict[str, Any]], page["identifiers"])
        ids = cast(list[str], page.get("table-uuids") or page.get("view-uuids") or [""] * len(found))
        protection = cast(list[bool], page.get("protection-status") or [False] * len(found))
        for one, tabular_id, protected in zip(found, ids, protection, strict=True):
            yield Tabular(tuple(one["namespace"]), one["name"], kind, tabular_id, protected)


def deleted(client: Client, warehouse_id: str) -> list[dict[str, Any]]:
    """Soft-deleted tables and views of an active warehouse, as the server answers them."""
    path = f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars"
    return [one for page in pages(client, path, BY_PAGE) for one in cast(list[dict[str, Any]], page["tabulars"])]


def dropped(client: Client, warehouse_id: str) -> list[Tabular]:
    """Soft-deleted tables and views of a warehouse."""
    return [
        Tabular(tuple(one["namespace"]), one["name"], one.get("typ") or "table", one["id"], dropped=True)
        for one in deleted(client, warehouse_id)
    ]


def drop(client: Client, warehouse_id: str, tabular: Tabular) -> None:
    """Drop a table or view at once, soft deletion or not, and have its files removed."""
    path = f"{namespaces.url(warehouse_id, tabular.namespace)}/{tabular.kind}s/{quote(tabular.name, safe='')}"
    # Both are said outright: the server's default for purging is the opposite of the Iceberg specification's.
    client.call("DELETE", path, params={"purgeRequested": True, "force": True})


def undrop(client: Client, warehouse_id: str, tabular: Tabular) -> None:
    """Bring a soft-deleted table or view back; its task ends."""
    target = {"type": tabular.kind, "id": tabular.tabular_id}
    client.call("POST", f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars/undrop", body={"targets": [target]})
