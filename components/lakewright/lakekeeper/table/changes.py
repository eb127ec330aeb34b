"""Update a table in place: find it, rename it, and commit changes until it matches its declaration."""

from __future__ import annotations

from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars
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
from lakewright.lakekeeper.provider.creation import look_up_existing
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, EvolutionRefusedError, NotOwnedError
from lakewright.lakekeeper.provider.resource_state import RecordedResource
from lakewright.lakekeeper.table import finding as table_finding
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.finding import LoadedTable
from lakewright.lakekeeper.table.requests import commit

MAX_ATTEMPTS = 5
"""Attempts of a change after conflicts or lost responses, each after a lookup."""

_MOVED = "moved from namespace "
_STATE_NAMESPACE = "state_namespace"
"""Output of a refresh that found the table in another namespace: the namespace in the state before."""
_MOVE_ADVICE = (
    "Keep the namespace. If an administrator of the server renames the table and runs `lakekeeper openfga reconcile"
    " --mode add-and-delete-drift` (Lakekeeper 0.12.1 and newer) afterwards, run `up --refresh`."
)


def describe_table(args: TableArgs) -> str:
    """Return the name of a table for messages."""
    return f"table `{args.full_name}` in warehouse {args.warehouse_id} at {args.server.endpoint}"


def refuse(args: TableArgs, problems: list[str]) -> None:
    """Raise EvolutionRefusedError with all reasons if there are any."""
    if problems:
        raise EvolutionRefusedError(format_refusal(args, problems))


def format_refusal(args: TableArgs, problems: list[str]) -> str:
    """Return the error message of a refused change."""
    return f"{describe_table(args)} was not changed: {' '.join(problems)}"


def find_hidden_drift(live_table: LoadedTable, state: TableArgs, *, is_recreated: bool) -> list[str]:
    """Return drift that no property shows: a new uuid or location, which only a replacement can change."""
    location = str(live_table.metadata["location"]).rstrip("/")
    moved = [f"moved to {location}"] if state.location not in {None, location} else []
    return [*([f"recreated as {live_table.table_id}"] if is_recreated else []), *moved]


def find_moves(client: Client, live_table: LoadedTable, resource: RecordedResource[TableArgs]) -> list[str]:
    """Return drift that names the namespace from which a job moved the table, whose grants OpenFGA still applies."""
    if not client.server().keeps_tuples:
        return []
    moves = list_moves(resource)
    if _is_elsewhere(live_table, resource.declared) and not moves:
        moves = [_describe_move(resource.declared.namespace)]
    undone = _describe_move(".".join(live_table.path))
    return [entry for entry in moves if entry.casefold() != undone.casefold()]


def list_moves(resource: RecordedResource[TableArgs]) -> list[str]:
    """Return the drift of earlier refreshes that names the namespace from which a job moved the table."""
    return [entry for entry in resource.drift if entry.startswith(_MOVED)]


def record_namespace(live_table: LoadedTable, state: TableArgs) -> dict[str, str]:
    """Return the output that records the namespace of the state, if the table is in another namespace."""
    return {_STATE_NAMESPACE: state.namespace} if _is_elsewhere(live_table, state) else {}


def _is_elsewhere(live_table: LoadedTable, state: TableArgs) -> bool:
    return not namespaces.is_same(live_table.path, state.path)


def refuse_move(client: Client, resource: RecordedResource[TableArgs], new: TableArgs) -> None:
    """Refuse to move a table on a server with OpenFGA, except back to the namespace from which a job moved it.

    A refresh compares the table with its state, and must not fail because a job moved it since.

    Raises:
        UnsupportedServerError: The server authorizes by OpenFGA.
    """
    accepted_moves = [*resource.drift, _describe_move(str(resource.outs.get(_STATE_NAMESPACE)))]
    if _describe_move(new.namespace).casefold() not in {entry.casefold() for entry in accepted_moves}:
        old = resource.declared
        tabulars.refuse_move(client, describe_table(old), old.path, new.path, _MOVE_ADVICE)


def _describe_move(namespace: str) -> str:
    return f"{_MOVED}`{namespace}`, whose grants still apply to it"


def expiry(client: Client, warehouse_id: str, dropped: Tabular) -> str:
    """Return until when (UTC) a soft-deleted table can be restored."""
    deleted_tables = tabulars.list_deleted(client, warehouse_id)
    return next((str(table["expiration-date"]) for table in deleted_tables if table["id"] == dropped.tabular_id), "now")


def find_or_restore(client: Client, old: TableArgs, new: TableArgs, table_id: str) -> LoadedTable:
    """Find the table of the state under any name. Restore it if it was soft-deleted."""
    for args in (old, new):  # its namespace may just have been renamed
        live_table = table_finding.find_by_name(client, old.warehouse_id, args.path, args.name)
        if live_table and live_table.table_id == table_id:
            return live_table
    lost = None
    if client.is_active(old.warehouse_id):
        lost = table_finding.elsewhere(client, old.warehouse_id, old.path, table_id)
    if isinstance(lost, Tabular):
        lost = _restore(client, old, lost)
    if lost is None:
        raise DeletedOutsideStackError(
            f"{describe_table(old)} ({table_id}) no longer exists, or its warehouse is inactive. Run `up --refresh`."
        )
    return lost


def _restore(client: Client, old: TableArgs, dropped: Tabular) -> LoadedTable | None:
    try:
        tabulars.undrop(client, old.warehouse_id, dropped)
    except AlreadyExistsError:
        raise NotOwnedError(
            f"{describe_table(old)} was dropped and cannot be restored, because another table has its name. Rename or"
            " drop that table, and run `up` again."
        ) from None
    return table_finding.find_by_name(client, old.warehouse_id, dropped.namespace, dropped.name)


def rename(client: Client, live_table: LoadedTable, new: TableArgs) -> LoadedTable:
    """Rename the table to its declared name. After a lost response, look it up before the next request."""
    renamed_table = LoadedTable(new.path, new.name, live_table.metadata)
    for tries_left in reversed(range(MAX_ATTEMPTS)):
        if (live_table.path, live_table.name) == (renamed_table.path, renamed_table.name):
            break
        try:
            tables.rename(client, new.warehouse_id, (live_table.path, live_table.name), (new.path, new.name))
        except AlreadyExistsError:
            raise _name_taken(live_table, new) from None
        except (UnconfirmedError, ResponseTimeoutError, NotFoundError) as error:
            confirmed_table = look_up_existing(
                lambda: table_finding.find_by_name(client, new.warehouse_id, new.path, new.name), error
            )
            if confirmed_table and confirmed_table.table_id == live_table.table_id:
                return confirmed_table
            if isinstance(error, NotFoundError) and _is_refused_name(client, live_table, new, error):
                raise _name_taken(live_table, new) from None
            if not tries_left or isinstance(error, NotFoundError):
                raise
            continue
        live_table = renamed_table
    return renamed_table


def _is_refused_name(client: Client, live_table: LoadedTable, new: TableArgs, missing: NotFoundError) -> bool:
    """Return whether a rename to a taken name was refused.

    Servers before 0.14 report the table as missing then. On them, a dropped table keeps its name.
    """
    if missing.kind != "NoSuchTableException":
        return False
    source = look_up_existing(
        lambda: table_finding.find_by_name(client, new.warehouse_id, live_table.path, live_table.name), missing
    )
    return source is not None and source.table_id == live_table.table_id


def _name_taken(live_table: LoadedTable, new: TableArgs) -> NotOwnedError:
    return NotOwnedError(
        f"table `{'.'.join(live_table.path)}.{live_table.name}` ({live_table.table_id}) cannot be renamed:"
        f" {describe_table(new)} is taken by another table or view, which may be dropped."
        " Choose another name, or drop or purge the other object."
    )


def commit_changes(
    client: Client, live_table: LoadedTable, old: TableArgs | None, new: TableArgs, ids: dict[str, int]
) -> LoadedTable:
    """Commit the declared changes. Keep concurrent changes of other clients while the declared changes remain safe.

    The requirements of a commit name the metadata that it is based on. After a conflict or a lost response, the table
    is read again, and the remaining changes are committed.
    """
    for tries_left in reversed(range(MAX_ATTEMPTS)):
        needed = commit(live_table.metadata, old, new, ids)
        refuse(new, needed.problems)
        if not needed.updates:
            return live_table
        try:
            return LoadedTable(
                live_table.path,
                live_table.name,
                tables.commit(client, new.warehouse_id, live_table.path, live_table.name, needed.body),
            )
        except (ConflictError, UnconfirmedError, ResponseTimeoutError) as error:
            if not tries_left:
                raise
            live_table = _read_again(client, live_table, new, error)
    raise AssertionError("the last try returns or raises")


def _read_again(client: Client, live_table: LoadedTable, new: TableArgs, after: LakekeeperError) -> LoadedTable:
    current_table = look_up_existing(
        lambda: table_finding.find_by_name(client, new.warehouse_id, live_table.path, live_table.name), after
    )
    if current_table is None or current_table.table_id != live_table.table_id:
        raise DeletedOutsideStackError(
            f"{describe_table(new)} ({live_table.table_id}) was dropped, renamed or recreated during this"
            " change. Run `up --refresh`."
        )
    return current_table
