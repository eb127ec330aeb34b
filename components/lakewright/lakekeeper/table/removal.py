"""Drop tables: only with `deletion: purge`, and then immediately. `dropped_files` decides about their files."""

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
from lakewright.lakekeeper.table.changes import describe_table
from lakewright.lakekeeper.table.finding import LoadedTable


def refuse_replacement(client: Client, old: TableArgs, new: TableArgs, table_id: str, changes: list[Change]) -> None:
    """Raise if a table must not be replaced. The `deletion` in the state decides, as for `destroy`."""
    listed_changes = ", ".join(str(change) for change in changes)
    live_table = _find(client, old, table_id)
    if live_table is None:
        return
    if old.deletion == "purge":
        if isinstance(live_table, LoadedTable) and tables.is_protected(client, old.warehouse_id, live_table.table_id):
            raise ProtectedError(
                f"{describe_table(old)} would be replaced, since the server cannot change {listed_changes}, and"
                " it is protected. Nothing"
                " was deleted. Remove its protection first."
            )
        return
    if old.deletion == "retain":
        if old.warehouse_id == new.warehouse_id:
            raise ReplacementRefusedError(
                f"{describe_table(old)} cannot be replaced ({listed_changes}): `deletion: retain` keeps it, and"
                " its name remains"
                " taken. Give the new table another name."
            )
        return
    raise HoldsTablesError(
        f"{describe_table(old)} would be replaced, since the server cannot change {listed_changes}. `deletion` is"
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
    live_table = _find(client, state, table_id)
    if live_table is None:
        return
    if state.deletion == "protect":
        if isinstance(live_table, Tabular):  # dropped outside the stack, and can still be restored
            return
        raise HoldsTablesError(
            f"{describe_table(state)} is not dropped: its `deletion` is `protect`. Set it to `purge` (drops the table"
            " with its files) or `retain` (keeps it) and run `up` before removing it."
        )
    if isinstance(live_table, LoadedTable) and tables.is_protected(client, state.warehouse_id, live_table.table_id):
        raise ProtectedError(
            f"{describe_table(state)} is protected, and was not dropped. Set `protected: false` and run `up` first."
        )
    with contextlib.suppress(NotFoundError):
        _drop(client, state, live_table)


def _drop(client: Client, state: TableArgs, live_table: LoadedTable | Tabular) -> None:
    if isinstance(live_table, LoadedTable):
        tabular = Tabular(live_table.path, live_table.name, "table", live_table.table_id)
    else:
        # Only a new drop request deletes the files, and immediately.
        tabular = live_table
        tabulars.undrop(client, state.warehouse_id, tabular)
    tabulars.drop(client, state.warehouse_id, tabular, purge=state.dropped_files == "delete")


def _find(client: Client, state: TableArgs, table_id: str) -> LoadedTable | Tabular | None:
    named_table = table_finding.find_by_name(client, state.warehouse_id, state.path, state.name)
    if named_table and named_table.table_id == table_id:
        return named_table
    active = client.is_active(state.warehouse_id)
    if active is None:
        return None
    if not active:
        raise InactiveWarehouseError(
            f"{describe_table(state)} cannot be seen while its warehouse is inactive. Set `active: true` and"
            " run `up` first.",
            state.warehouse_id,
        )
    live_table = table_finding.elsewhere(client, state.warehouse_id, state.path, table_id)
    if live_table is None and named_table is not None:
        warn(
            f"{describe_table(state)} is another table now ({named_table.table_id}, was {table_id}), and was"
            " not dropped"
        )
    return live_table
