"""Drop tables: only with `deletion: purge`, and then immediately and with their files."""

from __future__ import annotations

import contextlib

from lakewright.lakekeeper.api.catalog import tables, tabulars
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError, ProtectedError
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.errors import HoldsTablesError, InactiveWarehouseError, ReplacementRefusedError
from lakewright.lakekeeper.table import finding as table_finding
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.changes import where
from lakewright.lakekeeper.table.finding import LoadedTable


def refuse_replacement(client: Client, old: TableArgs, new: TableArgs, table_id: str, changes: list[Change]) -> None:
    """Raise if a table must not be replaced. The `deletion` in the state decides, as for `destroy`."""
    what = ", ".join(str(change) for change in changes)
    live_table = _find(client, old, table_id)
    if live_table is None:
        return
    if old.deletion == "purge":
        if isinstance(live_table, LoadedTable) and tables.is_protected(client, old.warehouse_id, live_table.table_id):
            raise ProtectedError(
                f"{where(old)} would be replaced, since the server cannot change {what}, and it is protected. Nothing"
                " was deleted. Remove its protection first."
            )
        return
    if old.deletion == "retain":
        if old.warehouse_id == new.warehouse_id:
            raise ReplacementRefusedError(
                f"{where(old)} cannot be replaced ({what}): `deletion: retain` keeps it, and its name stays"
                " taken. Give the new table another name."
            )
        return
    raise HoldsTablesError(
        f"{where(old)} would be replaced, since the server cannot change {what}. `deletion` is"
        f" `{old.deletion}` in the state. To delete the table, set it to `purge` and run `up` before this change."
    )


def find_removed(client: Client, state: TableArgs, table_id: str) -> LoadedTable | Tabular | None:
    """Return the table that `remove` drops under `deletion: purge`; None if it does not exist.

    Raises:
        InactiveWarehouseError: The warehouse hides its tables.
    """
    return _find(client, state, table_id)


def remove(client: Client, state: TableArgs, table_id: str) -> None:
    """Drop a table, or refuse to. Succeed if it does not exist. Keep another table that has its name."""
    if state.deletion == "retain":
        return
    found = _find(client, state, table_id)
    if found is None:
        return
    if state.deletion == "protect":
        if isinstance(found, Tabular):  # dropped outside the stack, and can still be restored
            return
        raise HoldsTablesError(
            f"{where(state)} is not dropped: its `deletion` is `protect`. Set it to `purge` (drops the table"
            " with its files) or `retain` (keeps it) and run `up` before removing it."
        )
    if isinstance(found, LoadedTable) and tables.is_protected(client, state.warehouse_id, found.table_id):
        raise ProtectedError(
            f"{where(state)} is protected, and was not dropped. Set `protected: false` and run `up` first."
        )
    with contextlib.suppress(NotFoundError):
        _drop(client, state, found)


def _drop(client: Client, state: TableArgs, found: LoadedTable | Tabular) -> None:
    if isinstance(found, LoadedTable):
        tabular = Tabular(found.path, found.name, "table", found.table_id)
    else:
        # Only a new drop request deletes the files, and immediately.
        tabular = found
        tabulars.undrop(client, state.warehouse_id, tabular)
    tabulars.drop(client, state.warehouse_id, tabular)


def _find(client: Client, state: TableArgs, table_id: str) -> LoadedTable | Tabular | None:
    there = table_finding.find_by_name(client, state.warehouse_id, state.path, state.name)
    if there and there.table_id == table_id:
        return there
    active = client.is_active(state.warehouse_id)
    if active is None:
        return None
    if not active:
        raise InactiveWarehouseError(
            f"{where(state)} cannot be seen while its warehouse is inactive. Set `active: true` and run `up` first.",
            state.warehouse_id,
        )
    found = table_finding.elsewhere(client, state.warehouse_id, state.path, table_id)
    if found is None and there is not None:
        warn(f"{where(state)} is another table now ({there.table_id}, was {table_id}), and was not dropped")
    return found
