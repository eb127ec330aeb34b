"""How a table is changed in place: found again, renamed, and led to its declaration by commits."""

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
"""So often a change is made anew when others were faster or its answer got lost, each time after a look."""


def where(declared: TableArgs) -> str:
    """A table, as messages name it."""
    return f"table `{declared.full_name}` in warehouse {declared.warehouse_id} at {declared.server.endpoint}"


def refuse(declared: TableArgs, problems: list[str]) -> None:
    """Raise EvolutionRefusedError, with all reasons, if there are any."""
    if problems:
        raise EvolutionRefusedError(refusal(declared, problems))


def refusal(declared: TableArgs, problems: list[str]) -> str:
    """Return the sentence that says why a table is not changed."""
    return f"{where(declared)} was left as it is: {' '.join(problems)}"


def unsaid(there: LoadedTable, state: TableArgs, *, again: bool) -> list[str]:
    """Drift that no property shows: of the uuid, and of the place, which a declaration changes by replacing alone."""
    location = str(there.metadata["location"]).rstrip("/")
    moved = [f"moved to {location}"] if state.location not in {None, location} else []
    return [*([f"made again as {there.table_id}"] if again else []), *moved]


def expiry(client: Client, warehouse_id: str, dropped: Tabular) -> str:
    """Until when (UTC) a soft-deleted table can be brought back."""
    found = tabulars.deleted(client, warehouse_id)
    return next((str(one["expiration-date"]) for one in found if one["id"] == dropped.tabular_id), "now")


def found_again(client: Client, old: TableArgs, new: TableArgs, table_id: str) -> LoadedTable:
    """The table that the state knows, wherever it is; one that was soft-deleted is brought back."""
    for declared in (old, new):  # its namespace may have been moved a moment ago, and the table with it
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
            f"{where(old)} ({table_id}) is not there any more, or hidden because the warehouse is inactive."
            " Run `up --refresh`."
        )
    return lost


def _brought_back(client: Client, old: TableArgs, dropped: Tabular) -> LoadedTable | None:
    try:
        tabulars.undrop(client, old.warehouse_id, dropped)
    except AlreadyExistsError:
        raise NotOwnedError(
            f"{where(old)} was dropped and cannot be brought back: another one has its name. Rename or drop"
            " that one, and run `up` again."
        ) from None
    return table_finding.find_by_name(client, old.warehouse_id, dropped.namespace, dropped.name)


def renamed(client: Client, there: LoadedTable, new: TableArgs) -> LoadedTable:
    """The table under its declared name. A rename whose answer got lost is looked for before it is sent again."""
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

    Servers before 0.14 answer such a rename as if the table were missing; a dropped table keeps its name there.
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
    """The table as declared. Changes that others made meanwhile are built upon, as long as ours stay safe.

    A commit is made from what the table is at that moment, and says so in its requirements; after a conflict or a lost
    answer the table is read again, and what is still missing is committed.
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
            f"{where(new)} ({there.table_id}) was dropped, renamed or made again while it was being changed."
            " Run `up --refresh`."
        )
    return now
