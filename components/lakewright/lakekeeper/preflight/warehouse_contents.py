"""Check for contents that prevent the deletion or replacement of a warehouse, and purge its contents."""

import contextlib
from typing import Protocol

from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BusyError, NotEmptyError, NotFoundError, ProtectedError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, ReplacementRefusedError
from lakewright.names.types import Deletion


class DeclaredWarehouse(Protocol):
    """Inputs of a warehouse that these checks need."""

    @property
    def name(self) -> str:
        """Name of the warehouse."""
        ...

    @property
    def project_id(self) -> str:
        """Id of the warehouse's project."""
        ...

    @property
    def deletion(self) -> Deletion:
        """Declared `deletion` of the warehouse."""
        ...


def list_tabulars(client: Client, warehouse_id: str, name: str) -> list[Tabular]:
    """Return the tables and views of a warehouse, including soft-deleted tables and views.

    The list is empty if the warehouse does not exist.

    Raises:
        CannotCountError: If the warehouse is inactive.
    """
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None:
        return []
    if warehouse["status"] != "active":
        raise CannotCountError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is inactive, so its tables cannot be counted."
            " Set `active: true` and run `up` first."
        )
    return contents.read_warehouse(client, warehouse_id).tabulars


def list_obstacles(client: Client, warehouse_id: str, name: str, own_namespaces: list[str]) -> list[str]:
    """Return the reasons why a warehouse without tables cannot be deleted.

    Reasons are protection of the warehouse or of its contents, and namespaces that are not in `own_namespaces`.
    """
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None:
        return []
    inside = contents.read_warehouse(client, warehouse_id)
    ours = {path.casefold() for path in own_namespaces}
    other_namespaces = sorted(
        path for namespace in inside.namespaces if (path := ".".join(namespace.path)).casefold() not in ours
    )
    reasons = _describe_protection(client, warehouse, name, inside)
    if other_namespaces:
        reasons.append(
            f"at {client.endpoint} warehouse `{name}` holds namespaces that the stack does not declare:"
            f" {', '.join(other_namespaces)}"
        )
    return reasons


def find_protected(client: Client, warehouse_id: str, name: str) -> list[str]:
    """Describe the protection of a warehouse, and of the namespaces, tables and views in it.

    The list is empty if nothing is protected, or if the warehouse does not exist.

    Raises:
        CannotCountError: If the warehouse is inactive.
    """
    live_warehouse = warehouses.get(client, warehouse_id)
    if live_warehouse is None:
        return []
    if live_warehouse["status"] != "active":
        raise CannotCountError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is inactive, so protected objects in it cannot"
            " be seen. Activate it first; `up --refresh` does that unless the program declares `active: false`."
        )
    return _describe_protection(client, live_warehouse, name, contents.read_warehouse(client, warehouse_id))


def _describe_protection(
    client: Client, live_warehouse: warehouses.WarehouseResponse, name: str, inside: contents.Contents
) -> list[str]:
    title = f"at {client.endpoint} warehouse `{name}`"
    reasons: list[str] = []
    if live_warehouse.get("protected"):
        reasons.append(f"{title} is protected (set `protected: false` and run `up` first)")
    if inside.protected:
        reasons.append(
            f"{title} holds protected objects (remove their protection first): {', '.join(inside.protected)}"
        )
    return reasons


def refuse_replacement(
    client: Client, warehouse_id: str, old: DeclaredWarehouse, new: DeclaredWarehouse, changes: list[Change]
) -> None:
    """Raise if a warehouse must not be replaced. The `deletion` in the state decides, as when destroying.

    Raises:
        HoldsTablesError: If the warehouse holds tables that `deletion` does not allow to purge.
        ProtectedError: If `deletion` is `purge`, and the warehouse or an object in it is protected.
        ReplacementRefusedError: If `deletion: retain` keeps the warehouse and its name.
    """
    listed_changes = ", ".join(str(change) for change in changes)
    title = f"warehouse `{old.name}` ({warehouse_id}) at {client.endpoint}"
    if old.deletion != "purge" and (tables := list_tabulars(client, warehouse_id, old.name)):
        raise HoldsTablesError(
            f"{title} would be replaced, since the server cannot change {listed_changes}; it holds"
            f" {contents.describe(tables)}."
            f" `deletion` is `{old.deletion}` in the state: to lose the tables, set it to `purge`"
            " and run `up` before this change."
        )
    if old.deletion == "purge" and (reasons := find_protected(client, warehouse_id, old.name)):
        raise ProtectedError(
            f"{title} would be replaced, since the server cannot change {listed_changes}. Nothing was deleted:"
            f" {'; '.join(reasons)}."
        )
    same_name = new.name.casefold() == old.name.casefold() and new.project_id == old.project_id
    if old.deletion == "retain" and same_name:
        raise ReplacementRefusedError(
            f"{title} cannot be replaced ({listed_changes}): `deletion: retain` keeps it, and its name remains taken."
            " Choose another name for the new warehouse."
        )


def remove(client: Client, warehouse_id: str, name: str, deletion: Deletion) -> None:
    """Delete a warehouse according to its `deletion`."""
    if deletion == "retain":
        return
    try:
        _delete(client, warehouse_id)
    except (NotEmptyError, BusyError) as refused:
        if deletion != "purge":
            raise _explain_refusal(client, warehouse_id, name, refused) from None
        _purge(client, warehouse_id, name)


def _delete(client: Client, warehouse_id: str) -> None:
    with contextlib.suppress(NotFoundError):
        warehouses.delete(client, warehouse_id)


def _explain_refusal(client: Client, warehouse_id: str, name: str, refused: NotEmptyError | BusyError) -> Exception:
    tables = list_tabulars(client, warehouse_id, name)
    if tables:
        return HoldsTablesError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is not deleted: it holds"
            f" {contents.describe(tables)}."
            " Drop them, or set `deletion` to `purge` (or `retain`) and run `up` before destroying."
        )
    other_namespaces = [
        ".".join(namespace.path) for namespace in contents.read_warehouse(client, warehouse_id).namespaces
    ]
    if other_namespaces and isinstance(refused, NotEmptyError):
        return NotEmptyError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is not deleted: it holds namespaces that are not"
            f" declared: {', '.join(other_namespaces)}. Drop them, or set `deletion` to `purge` and run `up`"
            " before destroying.",
            status=refused.status,
            kind=refused.kind,
        )
    return refused


def _purge(client: Client, warehouse_id: str, name: str) -> None:
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None:
        return
    if warehouse.get("protected"):
        raise ProtectedError(
            f"warehouse `{name}` ({warehouse_id}) at {client.endpoint} is protected; nothing was deleted."
            " Set `protected: false` and run `up` before destroying."
        )
    if warehouse["status"] != "active":
        warehouses.activate(client, warehouse_id)
    contents.purge(client, warehouse_id)
    # Dropped tables leave purge tasks, which the server completes in the background.
    retry_until(
        lambda: _delete(client, warehouse_id),
        lambda error: isinstance(error, BusyError),
        seconds=settings.purge_wait(),
        every=0.2,
    )
