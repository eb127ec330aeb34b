"""How a warehouse goes: what stands in the way of deleting or replacing it, and how it is emptied."""

import contextlib
from typing import Protocol

from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BusyError, NotEmptyError, NotFoundError, ProtectedError
from lakewright.lakekeeper.api.connection.retry import until
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, ReplacementRefusedError
from lakewright.names.types import Deletion


class DeclaredWarehouse(Protocol):
    """What is needed of a declaration here."""

    @property
    def name(self) -> str:
        """Name of the warehouse."""
        ...

    @property
    def project_id(self) -> str:
        """Id of its project."""
        ...

    @property
    def deletion(self) -> Deletion:
        """The declaration's `deletion`."""
        ...


def held(client: Client, warehouse_id: str, name: str) -> list[Tabular]:
    """Tables and views of a warehouse, soft-deleted ones too; none of one that is gone. Raises CannotCountError."""
    found = warehouses.get(client, warehouse_id)
    if found is None:
        return []
    if found["status"] != "active":
        raise CannotCountError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is inactive, so its tables cannot be counted."
            " Set `active: true` and run `up` first."
        )
    return contents.of_warehouse(client, warehouse_id).tabulars


def in_the_way(client: Client, warehouse_id: str, name: str, own: list[str]) -> list[str]:
    """Return the reasons why a warehouse without tables cannot be deleted.

    Reasons are its protection, the protection of what is in it, and namespaces that are not among its `own`.
    """
    found = warehouses.get(client, warehouse_id)
    if found is None:
        return []
    where = f"at {client.endpoint} warehouse `{name}`"
    inside = contents.of_warehouse(client, warehouse_id)
    ours = {one.casefold() for one in own}
    others = sorted(path for one in inside.namespaces if (path := ".".join(one.path)).casefold() not in ours)
    reasons: list[str] = []
    if found.get("protected"):
        reasons.append(f"{where} is protected (only `protected: false` and an `up` help)")
    if inside.protected:
        reasons.append(f"{where} holds what is protected (take the protection away): {', '.join(inside.protected)}")
    if others:
        reasons.append(f"{where} holds namespaces that the stack does not declare: {', '.join(others)}")
    return reasons


def refuse_replacement(
    client: Client, warehouse_id: str, old: DeclaredWarehouse, new: DeclaredWarehouse, changes: list[Change]
) -> None:
    """Raise if a warehouse must not be replaced. What counts is the state's `deletion`, as when destroying."""
    what = ", ".join(str(change) for change in changes)
    where = f"warehouse `{old.name}` ({warehouse_id}) at {client.endpoint}"
    if old.deletion != "purge" and (tables := held(client, warehouse_id, old.name)):
        raise HoldsTablesError(
            f"{where} would be replaced, since the server cannot change {what}; it holds {contents.described(tables)}."
            f" `deletion` is `{old.deletion}` in the state: to lose the tables, set it to `purge`"
            " and run `up` before this change."
        )
    same_name = new.name.casefold() == old.name.casefold() and new.project_id == old.project_id
    if old.deletion == "retain" and same_name:
        raise ReplacementRefusedError(
            f"{where} cannot be replaced ({what}): `deletion: retain` keeps it, and its name stays taken."
            " Give the new one another name."
        )


def remove(client: Client, warehouse_id: str, name: str, deletion: Deletion) -> None:
    """Delete a warehouse as its `deletion` says."""
    if deletion == "retain":
        return
    try:
        _delete(client, warehouse_id)
    except (NotEmptyError, BusyError) as refused:
        if deletion != "purge":
            raise _explained(client, warehouse_id, name, refused) from None
        _purge(client, warehouse_id, name)


def _delete(client: Client, warehouse_id: str) -> None:
    with contextlib.suppress(NotFoundError):
        warehouses.delete(client, warehouse_id)


def _explained(client: Client, warehouse_id: str, name: str, refused: NotEmptyError | BusyError) -> Exception:
    tables = held(client, warehouse_id, name)
    if tables:
        return HoldsTablesError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is not deleted: it holds"
            f" {contents.described(tables)}."
            " Drop them, or set `deletion` to `purge` (or `retain`) and run `up` before destroying."
        )
    others = [".".join(one.path) for one in contents.of_warehouse(client, warehouse_id).namespaces]
    if others and isinstance(refused, NotEmptyError):
        return NotEmptyError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is not deleted: it holds namespaces that are not"
            f" declared: {', '.join(others)}. Drop them, or set `deletion` to `purge` and run `up` before destroying.",
            status=refused.status,
            kind=refused.kind,
        )
    return refused


def _purge(client: Client, warehouse_id: str, name: str) -> None:
    found = warehouses.get(client, warehouse_id)
    if found is None:
        return
    if found.get("protected"):
        raise ProtectedError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is protected; nothing was removed."
            " Set `protected: false` and run `up` before destroying."
        )
    if found["status"] != "active":
        warehouses.activate(client, warehouse_id)
    contents.purge(client, warehouse_id)
    # Dropped tables leave purge tasks behind, which the server works off by itself.
    until(
        lambda: _delete(client, warehouse_id),
        lambda error: isinstance(error, BusyError),
        seconds=settings.purge_wait(),
        every=0.2,
    )
