"""What a warehouse or namespace holds, and how all of it is removed."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewright.lakekeeper.api.catalog import namespaces, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BusyError, NotFoundError, ProtectedError
from lakewright.lakekeeper.api.connection.retry import until

NAMED = 10
"""So many tables are named in a message; the rest is counted."""


@dataclass(frozen=True)
class Contents:
    """What was found in a warehouse, or under one of its namespaces."""

    namespaces: list[ListedNamespace]
    tabulars: list[Tabular]

    @property
    def protected(self) -> list[str]:
        """Names of what is protected from deletion."""
        return [".".join(n.path) for n in self.namespaces if n.protected] + [
            str(t) for t in self.tabulars if t.protected
        ]

    @property
    def in_words(self) -> str:
        """`with contents: a, a.b`; empty for none."""
        names = sorted([".".join(one.path) for one in self.namespaces] + [str(one) for one in self.tabulars])
        return f"with contents: {', '.join(names[:NAMED])}" if names else ""


def described(found: list[Tabular]) -> str:
    """`3 tables, 1 of them soft-deleted (a.b, ...)`."""
    dropped = sum(1 for one in found if one.dropped)
    names = sorted(f"{one} (soft-deleted)" if one.dropped else str(one) for one in found)
    listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    noun = "table or view" if any(one.kind == "view" for one in found) else "table"
    count = f"{len(found)} {noun if len(found) == 1 else noun.replace(' or view', 's and view') + 's'}"
    return f"{count}{f', {dropped} of them soft-deleted' if dropped else ''}: {listed}"


def of_warehouse(client: Client, warehouse_id: str) -> Contents:
    """Everything in an active warehouse."""
    found = [
        one
        for root in namespaces.children(client, warehouse_id)
        for one in (root, *_below(client, warehouse_id, root.path))
    ]
    return _contents(client, warehouse_id, found, None)


def of_namespace(client: Client, warehouse_id: str, path: Path) -> Contents:
    """Everything under a namespace, without the namespace itself."""
    return _contents(client, warehouse_id, _below(client, warehouse_id, path), path)


def _below(client: Client, warehouse_id: str, path: Path) -> list[ListedNamespace]:
    return [
        one
        for child in namespaces.children(client, warehouse_id, path)
        for one in (child, *_below(client, warehouse_id, child.path))
    ]


def _contents(client: Client, warehouse_id: str, found: list[ListedNamespace], root: Path | None) -> Contents:
    paths = [n.path for n in found] + ([root] if root else [])
    held = [one for path in paths for one in tabulars.live(client, warehouse_id, path)]
    dropped = tabulars.dropped(client, warehouse_id)
    if root:
        dropped = [one for one in dropped if _within(one.namespace, root)]
    return Contents(found, held + dropped)


def _within(path: Path, root: Path) -> bool:
    return tuple(part.casefold() for part in path[: len(root)]) == tuple(part.casefold() for part in root)


def purge(client: Client, warehouse_id: str, path: Path | None = None) -> None:
    """Remove what a warehouse, or a namespace, holds, files included; the namespace itself stays.

    Refuses before anything is touched if something in it is protected. Raises ProtectedError.
    """
    found = of_namespace(client, warehouse_id, path) if path else of_warehouse(client, warehouse_id)
    if found.protected:
        raise ProtectedError(
            f"nothing was removed from warehouse {warehouse_id} at {client.endpoint}, because these are protected:"
            f" {', '.join(found.protected)}. Take the protection away first."
        )
    for one in found.tabulars:
        if not one.dropped:
            _ignoring_missing(lambda one=one: tabulars.drop(client, warehouse_id, one))
    # What was soft-deleted is brought back first: only a drop of its own says that its files are to go, and go now. One
    # after the other, since several of them may have had the same name.
    for one in found.tabulars:
        if one.dropped:
            _ignoring_missing(lambda one=one: tabulars.undrop(client, warehouse_id, one))
            _ignoring_missing(lambda one=one: tabulars.drop(client, warehouse_id, one))
    depth = len(path) + 1 if path else 1
    for one in found.namespaces:
        if len(one.path) == depth:  # takes along what is deeper
            delete_namespace(client, warehouse_id, one.path, with_content=True)


def delete_namespace(client: Client, warehouse_id: str, path: Path, *, with_content: bool = False) -> bool:
    """Drop a namespace, waiting for expirations that are running in it; whether it was there to be seen."""

    def attempt() -> bool:
        return _ignoring_missing(lambda: namespaces.delete(client, warehouse_id, path, with_content=with_content))

    return until(attempt, lambda error: isinstance(error, BusyError), seconds=60, every=0.2)


def _ignoring_missing(call: Callable[[], None]) -> bool:
    """Whether the object was there."""
    try:
        call()
    except NotFoundError:
        return False
    return True
