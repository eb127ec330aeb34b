"""Update a table in place: find it, rename it, and commit changes until it matches its declaration."""

from __future__ import annotations

from lakewright.lakekeeper.api.catalog import tables, tabulars
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    ConflictError,
    LakekeeperError,
    NotFoundError,
    ResponseTimeoutError,
    UnconfirmedError,
)
from lakewright.lakekeeper.provider.creation import looked
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, EvolutionRefusedError, NotOwnedError
from lakewright.lakekeeper.table import finding as table_finding
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.finding import LoadedTable
from lakewright.lakekeeper.table.requests import commit

TRIES = 5
"""Attempts of a change after conflicts or lost responses, each after a lookup."""


def where(declared: TableArgs) -> str:
    """Return the name of a table for messages."""
    return f"table `{declared.full_name}` in warehouse {declared.warehouse_id} at {declared.server.endpoint}"


def refuse(declared: TableArgs, problems: list[str]) -> None:
    """Raise EvolutionRefusedError with all reasons if there are any."""
    if problems:
        raise EvolutionRefusedError(refusal(declared, problems))


def refusal(declared: TableArgs, problems: list[str]) -> str:
    """Return the error message of a refused change."""
    return f"{where(declared)} was not changed: {' '.join(problems)}"


def hidden_drift(there: LoadedTable, state: TableArgs, *, again: bool) -> list[str]:
    """Return drift that no property shows: a new uuid or location, which only a replacement can change."""
    location = str(there.metadata["location"]).rstrip("/")
    moved = [f"moved to {location}"] if state.location not in {None, location} else []
    return [*([f"recreated as {there.table_id}"] if again else []), *moved]


def expiry(client: Client, warehouse_id: str, dropped: Tabular) -> str:
    """Return until when (UTC) a soft-deleted table can be restored."""
    found = tabulars.deleted(client, warehouse_id)
    return next((str(table["expiration-date"]) for table in found if table["id"] == dropped.tabular_id), "now")


def found_again(client: Client, old: TableArgs, new: TableArgs, table_id: str) -> LoadedTable:
    """Find the table of the state under any name. Restore it if it was soft-deleted."""
    for declared in (old, new):  # its namespace may just have been renamed
        there = table_finding.find_by_name(client, old.warehouse_id, declared.path, declared.name)
        if there and there.table_id == table_id:
            return there
    lost = None
    if client.is_active(old.warehouse_id):
        lost = table_finding.elsewhere(client, old.warehouse_id, old.path, table_id)
    if isinstance(lost, Tabular):
        lost = _brought_back(client, old, lost)
    if lost is None:
        raise DeletedOutsideStackError(
            f"{where(old)} ({table_id}) does not exist any more, or its warehouse is inactive. Run `up --refresh`."
        )
    return lost


def _brought_back(client: Client, old: TableArgs, dropped: Tabular) -> LoadedTable | None:
    try:
        tabulars.undrop(client, old.warehouse_id, dropped)
    except AlreadyExistsError:
        raise NotOwnedError(
            f"{where(old)} was dropped and cannot be restored, because another table has its name. Rename or"
            " drop that table, and run `up` again."
        ) from None
    return table_finding.find_by_name(client, old.warehouse_id, dropped.namespace, dropped.name)


def renamed(client: Client, there: LoadedTable, new: TableArgs) -> LoadedTable:
    """Rename the table to its declared name. After a lost response, look it up before the next request."""
    wanted = LoadedTable(new.path, new.name, there.metadata)
    for tries_left in reversed(range(TRIES)):
        if (there.path, there.name) == (wanted.path, wanted.name):
            break
        try:
            tables.rename(client, new.warehouse_id, (there.path, there.name), (new.path, new.name))
        except AlreadyExistsError:
            raise _name_taken(there, new) from None
        except (UnconfirmedError, ResponseTimeoutError, NotFoundError) as error:
            found = looked(lambda: table_finding.find_by_name(client, new.warehouse_id, new.path, new.name), error)
            if found and found.table_id == there.table_id:
                return found
            if isinstance(error, NotFoundError) and _is_refused_name(client, there, new, error):
                raise _name_taken(there, new) from None
            if not tries_left or isinstance(error, NotFoundError):
                raise
            continue
        there = wanted
    return wanted


def _is_refused_name(client: Client, there: LoadedTable, new: TableArgs, missing: NotFoundError) -> bool:
    """Return whether a rename to a taken name was refused.

    Servers before 0.14 report the table as missing then. On them, a dropped table keeps its name.
    """
    if missing.kind != "NoSuchTableException":
        return False
    source = looked(lambda: table_finding.find_by_name(client, new.warehouse_id, there.path, there.name), missing)
    return source is not None and source.table_id == there.table_id


def _name_taken(there: LoadedTable, new: TableArgs) -> NotOwnedError:
    return NotOwnedError(
        f"table `{'.'.join(there.path)}.{there.name}` ({there.table_id}) cannot be renamed:"
        f" {where(new)} is taken by another table or view, which may be a dropped one. Choose another name, or drop"
        " or purge that one."
    )


def committed(
    client: Client, there: LoadedTable, old: TableArgs | None, new: TableArgs, ids: dict[str, int]
) -> LoadedTable:
    """Commit the declared changes. Keep concurrent changes of other clients while the declared ones stay safe.

    The requirements of a commit name the metadata that it is based on. After a conflict or a lost response, the table
    is read again, and the remaining changes are committed.
    """
    for tries_left in reversed(range(TRIES)):
        needed = commit(there.metadata, old, new, ids)
        refuse(new, needed.problems)
        if not needed.updates:
            return there
        try:
            return LoadedTable(
                there.path, there.name, tables.commit(client, new.warehouse_id, there.path, there.name, needed.body)
            )
        except (ConflictError, UnconfirmedError, ResponseTimeoutError) as error:
            if not tries_left:
                raise
            there = _read_again(client, there, new, error)
    raise AssertionError("the last try returns or raises")


def _read_again(client: Client, there: LoadedTable, new: TableArgs, after: LakekeeperError) -> LoadedTable:
    now = looked(lambda: table_finding.find_by_name(client, new.warehouse_id, there.path, there.name), after)
    if now is None or now.table_id != there.table_id:
        raise DeletedOutsideStackError(
            f"{where(new)} ({there.table_id}) was dropped, renamed or recreated during this change. Run `up --refresh`."
        )
    return now
