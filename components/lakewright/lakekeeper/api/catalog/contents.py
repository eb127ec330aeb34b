"""List and delete the contents of a warehouse or namespace."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.catalog import namespaces, tabulars, views
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BusyError, NotFoundError, ProtectedError

MAX_NAMED_TABLES = 10
"""Maximum number of tables that a message names; further tables are counted."""


@dataclass(frozen=True)
class Contents:
    """Contents of a warehouse, or of one of its namespaces."""

    namespaces: list[ListedNamespace]
    tabulars: list[Tabular]

    @property
    def protected(self) -> list[str]:
        """Return the names of the protected namespaces, tables and views."""
        return [".".join(n.path) for n in self.namespaces if n.protected] + [
            str(t) for t in self.tabulars if t.protected
        ]

    @property
    def in_words(self) -> str:
        """Return `with contents: a, a.b`; empty if there are none."""
        names = sorted([".".join(entry.path) for entry in self.namespaces] + [str(entry) for entry in self.tabulars])
        return f"with contents: {', '.join(names[:MAX_NAMED_TABLES])}" if names else ""


def describe(tabular_list: list[Tabular]) -> str:
    """Return a summary such as `3 tables, 1 of them soft-deleted (a.b, ...)`."""
    dropped = sum(1 for tabular in tabular_list if tabular.dropped)
    names = sorted(f"{tabular} (soft-deleted)" if tabular.dropped else str(tabular) for tabular in tabular_list)
    names_text = ", ".join(names[:MAX_NAMED_TABLES]) + (
        f" and {len(names) - MAX_NAMED_TABLES} more" if len(names) > MAX_NAMED_TABLES else ""
    )
    noun = "table or view" if any(tabular.kind == "view" for tabular in tabular_list) else "table"
    count = f"{len(tabular_list)} {noun if len(tabular_list) == 1 else noun.replace(' or view', 's and view') + 's'}"
    return f"{count}{f', {dropped} of them soft-deleted' if dropped else ''}: {names_text}"


def read_warehouse(client: Client, warehouse_id: str) -> Contents:
    """Return all contents of an active warehouse."""
    namespace_list = [
        namespace
        for root in namespaces.list_children(client, warehouse_id)
        for namespace in (root, *_below(client, warehouse_id, root.path))
    ]
    return _contents(client, warehouse_id, namespace_list, None)


def read_namespace(client: Client, warehouse_id: str, path: Path) -> Contents:
    """Return all contents of a namespace, without the namespace itself."""
    return _contents(client, warehouse_id, _below(client, warehouse_id, path), path)


def _below(client: Client, warehouse_id: str, path: Path) -> list[ListedNamespace]:
    return [
        namespace
        for child in namespaces.list_children(client, warehouse_id, path)
        for namespace in (child, *_below(client, warehouse_id, child.path))
    ]


def _contents(client: Client, warehouse_id: str, namespace_list: list[ListedNamespace], root: Path | None) -> Contents:
    paths = [n.path for n in namespace_list] + ([root] if root else [])
    tabular_list = [tabular for path in paths for tabular in tabulars.live(client, warehouse_id, path)]
    dropped = tabulars.list_dropped(client, warehouse_id)
    if root:
        dropped = [tabular for tabular in dropped if _is_within(tabular.namespace, root)]
    return Contents(namespace_list, tabular_list + dropped)


def find_views_with_default(client: Client, warehouse_id: str, path: Path) -> list[str]:
    """Return the views outside a namespace that have it, or a namespace in it, as default namespace of any version.

    The server does not drop such a namespace. It does not show the versions of soft-deleted views: each may be one.
    """
    tabular_list = read_warehouse(client, warehouse_id).tabulars
    outside = [view for view in tabular_list if view.kind == "view" and not _is_within(view.namespace, path)]
    live_views = [str(view) for view in outside if not view.dropped and _has_default(client, warehouse_id, view, path)]
    return live_views + [f"{view} (perhaps, it is soft-deleted)" for view in outside if view.dropped]


def _has_default(client: Client, warehouse_id: str, view: Tabular, path: Path) -> bool:
    metadata = views.load(client, warehouse_id, view.namespace, view.name)
    return metadata is not None and any(
        _is_within(tuple(version["default-namespace"]), path) for version in metadata["versions"]
    )


def _is_within(path: Path, root: Path) -> bool:
    return namespaces.is_same(path[: len(root)], root)


def purge(client: Client, warehouse_id: str, path: Path | None = None) -> None:
    """Delete the contents of a warehouse or namespace with their files. The namespace itself is kept.

    Raises:
        ProtectedError: Something in it is protected; nothing was deleted.
    """
    contents = read_namespace(client, warehouse_id, path) if path else read_warehouse(client, warehouse_id)
    if contents.protected:
        raise ProtectedError(
            f"nothing was removed from warehouse {warehouse_id} at {client.endpoint}, because these are protected:"
            f" {', '.join(contents.protected)}. Remove the protection first."
        )
    for tabular in contents.tabulars:
        if not tabular.dropped:
            _ignore_missing(lambda tabular=tabular: tabulars.drop(client, warehouse_id, tabular))
    # Soft-deleted tables are restored first: only an explicit drop with purge deletes the files at once. They are
    # restored one after the other, since several of them may have had the same name.
    for tabular in contents.tabulars:
        if tabular.dropped:
            _ignore_missing(lambda tabular=tabular: tabulars.undrop(client, warehouse_id, tabular))
            _ignore_missing(lambda tabular=tabular: tabulars.drop(client, warehouse_id, tabular))
    depth = len(path) + 1 if path else 1
    for namespace in contents.namespaces:
        if len(namespace.path) == depth:  # deletes the namespaces below it, too
            delete_namespace(client, warehouse_id, namespace.path, with_content=True)


def delete_namespace(client: Client, warehouse_id: str, path: Path, *, with_content: bool = False) -> bool:
    """Drop a namespace and return whether it existed. Waits for expirations that are running in it."""

    def attempt() -> bool:
        return _ignore_missing(lambda: namespaces.delete(client, warehouse_id, path, with_content=with_content))

    return retry_until(attempt, lambda error: isinstance(error, BusyError), seconds=60, every=0.2)


def _ignore_missing(call: Callable[[], None]) -> bool:
    """Make a call and return whether the object existed."""
    try:
        call()
    except NotFoundError:
        return False
    return True
