"""Calls about a warehouse's catalog configuration, and its namespaces. A path is a tuple of levels, outermost first."""

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
from lakewright.lakekeeper.api.connection.paging import Params, pages

Path = tuple[str, ...]

SERVER_OWNED = frozenset({"location", "namespace_id", "managed_access"})
"""Properties that the server sets."""


@dataclass(frozen=True)
class ListedNamespace:
    """A namespace in a listing."""

    path: Path
    namespace_id: str
    """Id; empty if the list does not contain it."""
    protected: bool | None
    """None if the list does not contain it."""


def read_id(response: dict[str, Any]) -> str:
    """Return the id of a namespace from its response."""
    return str(response.get("namespace-uuid") or response["properties"]["namespace_id"])


def join_levels(path: Path) -> str:
    """Return the path as a query parameter: its levels, joined by the unit separator."""
    return "\x1f".join(path)


def url(warehouse_id: str, path: Path | None = None) -> str:
    """Return the URL path of a warehouse's namespaces, or of one namespace."""
    root = f"/catalog/v1/{warehouse_id}/namespaces"
    return root if path is None else f"{root}/{quote(join_levels(path), safe='')}"


def create(client: Client, warehouse_id: str, path: Path, properties: dict[str, str]) -> dict[str, Any]:
    """Create a namespace. Its parent must exist."""
    body = {"namespace": list(path), "properties": properties}
    return client.json("POST", url(warehouse_id), body=body, idempotent=False)


def get(client: Client, warehouse_id: str, path: Path) -> dict[str, Any] | None:
    """Return a namespace with its properties; None if it or its warehouse does not exist."""
    try:
        return client.json("GET", url(warehouse_id, path), params={"returnUuid": True})
    except NotFoundError:
        return None


def list_children(client: Client, warehouse_id: str, parent: Path | None = None) -> list[ListedNamespace]:
    """Return the namespaces one level below a namespace, or the outermost namespaces."""
    entries: list[ListedNamespace] = []
    params: Params = {"returnUuids": True, "returnProtectionStatus": True}
    if parent:
        params["parent"] = join_levels(parent)
    for page in pages(client, url(warehouse_id), params):
        paths = cast(list[list[str]], page["namespaces"])
        ids = cast(list[str], page.get("namespace-uuids") or [""] * len(paths))
        protection = cast(list[bool | None], page.get("protection-status") or [None] * len(paths))
        entries += [ListedNamespace(tuple(p), i, s) for p, i, s in zip(paths, ids, protection, strict=True)]
    return entries


def get_cached(client: Client, warehouse_id: str, path: Path) -> ListedNamespace | None:
    """Return a namespace from the cached list of its level; None if the list does not contain it."""
    return (_list_shared(client, warehouse_id, path[:-1]) or {}).get(_fold_case(path))


def list_cached(client: Client, warehouse_id: str, parent: Path | None = None) -> list[ListedNamespace]:
    """Return what `children` returns, from the list that `get_cached` shares.

    Raises:
        RefusedError: The server refuses the list.
    """
    shared_list = _list_shared(client, warehouse_id, parent or ())
    return list_children(client, warehouse_id, parent) if shared_list is None else list(shared_list.values())


def _list_shared(client: Client, warehouse_id: str, parent: Path) -> dict[Path, ListedNamespace] | None:
    return client.lists.get_cached_unless_refused(
        (client, "namespaces", warehouse_id, _fold_case(parent)),
        lambda: {_fold_case(child.path): child for child in list_children(client, warehouse_id, parent or None)},
    )


def is_same(path: Path, other: Path) -> bool:
    """Return whether two paths name one namespace."""
    return _fold_case(path) == _fold_case(other)


def _fold_case(path: Path) -> Path:
    """Return the path in lower case, since the server ignores case."""
    return tuple(part.casefold() for part in path)


def change_properties(
    client: Client, warehouse_id: str, path: Path, updates: dict[str, str], removals: list[str]
) -> None:
    """Set and remove properties."""
    body = {"updates": updates, "removals": removals}
    client.call("POST", f"{url(warehouse_id, path)}/properties", body=body)


def is_protected(client: Client, warehouse_id: str, namespace_id: str) -> bool:
    """Return whether a namespace is protected from deletion."""
    protection = client.json("GET", f"/management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/protection")
    return bool(protection["protected"])


def protect(client: Client, warehouse_id: str, namespace_id: str, *, protected: bool) -> None:
    """Set or remove a namespace's protection from deletion."""
    path = f"/management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/protection"
    client.call("POST", path, body={"protected": protected})


def delete(client: Client, warehouse_id: str, path: Path, *, with_content: bool = False) -> None:
    """Drop an empty namespace, or a namespace with its contents."""
    params = {"recursive": True, "force": True, "purge": True} if with_content else None
    client.call("DELETE", url(warehouse_id, path), params=params)


def get_catalog_config(client: Client, warehouse: str, project_id: str | None = None) -> dict[str, Any]:
    """Return the defaults and overrides of an active warehouse, by its name."""
    # The server reads the part before the first slash as a project id. A name alone works in the default project only.
    name = f"{project_id}/{warehouse}" if project_id else warehouse
    return client.json("GET", "/catalog/v1/config", params={"warehouse": name})
