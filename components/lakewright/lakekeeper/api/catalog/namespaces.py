"""Calls about namespaces. A path is a list of levels, outermost first."""

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
from lakewright.lakekeeper.api.connection.paging import Params, pages

Path = tuple[str, ...]

SERVER_OWNED = frozenset({"location", "namespace_id", "managed_access"})
"""Properties that the server sets by itself."""


@dataclass(frozen=True)
class ListedNamespace:
    """A namespace in a listing."""

    path: Path
    namespace_id: str
    """Empty if the list lacks it."""
    protected: bool | None
    """None if the list lacks it."""


def id_of(found: dict[str, Any]) -> str:
    """Id of a namespace that the server answered."""
    return str(found.get("namespace-uuid") or found["properties"]["namespace_id"])


def joined(path: Path) -> str:
    """A path as it stands in a query parameter: levels with the unit separator between."""
    return "\x1f".join(path)


def url(warehouse_id: str, path: Path | None = None) -> str:
    """Path of the namespaces of a warehouse, or of one of them."""
    root = f"/catalog/v1/{warehouse_id}/namespaces"
    return root if path is None else f"{root}/{quote(joined(path), safe='')}"


def create(client: Client, warehouse_id: str, path: Path, properties: dict[str, str]) -> dict[str, Any]:
    """Create a namespace; its parent must be there."""
    body = {"namespace": list(path), "properties": properties}
    return client.json("POST", url(warehouse_id), body=body, idempotent=False)


def get(client: Client, warehouse_id: str, path: Path) -> dict[str, Any] | None:
    """A namespace with its properties, or None if it (or its warehouse) is not there."""
    try:
        return client.json("GET", url(warehouse_id, path), params={"returnUuid": True})
    except NotFoundError:
        return None


def children(client: Client, warehouse_id: str, parent: Path | None = None) -> list[ListedNamespace]:
    """The namespaces one level below another, or the outermost ones."""
    listed: list[ListedNamespace] = []
    params: Params = {"returnUuids": True, "returnProtectionStatus": True}
    if parent:
        params["parent"] = joined(parent)
    for page in pages(client, url(warehouse_id), params):
        paths = cast(list[list[str]], page["namespaces"])
        ids = cast(list[str], page.get("namespace-uuids") or [""] * len(paths))
        protection = cast(list[bool | None], page.get("protection-status") or [None] * len(paths))
        listed += [ListedNamespace(tuple(p), i, s) for p, i, s in zip(paths, ids, protection, strict=True)]
    return listed


def get_cached(client: Client, warehouse_id: str, path: Path) -> ListedNamespace | None:
    """A namespace in the list of its level, which all readers of a refresh share; None if it is not in there."""
    parent = path[:-1]
    listed = client.lists.get_cached_unless_refused(
        (client, "namespaces", warehouse_id, _folded(parent)),
        lambda: {_folded(one.path): one for one in children(client, warehouse_id, parent or None)},
    )
    return (listed or {}).get(_folded(path))


def _folded(path: Path) -> Path:
    """Return the path in lower case: the server ignores case."""
    return tuple(part.casefold() for part in path)


def change_properties(
    client: Client, warehouse_id: str, path: Path, updates: dict[str, str], removals: list[str]
) -> None:
    """Set and remove properties."""
    body = {"updates": updates, "removals": removals}
    client.call("POST", f"{url(warehouse_id, path)}/properties", body=body)


def is_protected(client: Client, warehouse_id: str, namespace_id: str) -> bool:
    """Whether a namespace is protected from deletion."""
    answer = client.json("GET", f"/management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/protection")
    return bool(answer["protected"])


def protect(client: Client, warehouse_id: str, namespace_id: str, *, protected: bool) -> None:
    """Protect a namespace from deletion, or no longer."""
    path = f"/management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/protection"
    client.call("POST", path, body={"protected": protected})


def delete(client: Client, warehouse_id: str, path: Path, *, with_content: bool = False) -> None:
    """Drop a namespace: an empty one, or one with whatever is in it."""
    params = {"recursive": True, "force": True, "purge": True} if with_content else None
    client.call("DELETE", url(warehouse_id, path), params=params)
