"""`lakewright undrop`: list the dropped tables of a stack's warehouses, and restore a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from lakewright_spark.times import format_time

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, open_stack
from lakewright.names.table_name import QualifiedName, parse_parts, parse_table_name
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from pathlib import Path

    from lakewright.lakekeeper.lookups.undropping import DroppedTable, WarehouseRef

_TYPE = "pulumi-python:dynamic/lakekeeper:Warehouse"


def undrop(
    stack: StackName,
    *,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="WAREHOUSE.NAMESPACE.TABLE",
            help="Name of the table; quote a part that contains a dot: w.n.'\"a.b\"'.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the tables and views that can be restored.")] = False,
    tabular_id: Annotated[
        str | None, typer.Option("--id", help="ID of the table, if several had the same name.")
    ] = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Restore a dropped table or view; the latest one if several had the name. Needs the stack's passphrase.

    Tables can be restored until the soft deletion of the warehouse expires.

    Example: lakewright undrop --stack acme executions.results.orders
    """
    if not show and table is None and tabular_id is None:
        raise UsageError("name the table: `lakewright undrop STACK WAREHOUSE.NAMESPACE.TABLE`, or use --list")
    warehouses = _warehouses(stack, directory)
    if show:
        _print_list(_list_below(warehouses, table), as_json=as_json)
        return
    latest, *older = _find_dropped(warehouses, table, tabular_id)
    from lakewright.lakekeeper.lookups import undropping  # noqa: PLC0415 - `--help` needs no client

    undropping.bring_back(latest)
    if as_json:
        print(json.dumps({"version": 1, **_to_json(latest)}, indent=2))
        return
    print(escape_line(f"Restored {latest}, {_times(latest)}."))
    for other in older:
        print(f"Also dropped under the same name: {other.table.tabular_id}, {_times(other)}. Restore it with --id.")


def _warehouses(stack: str, directory: Path) -> dict[str, WarehouseRef]:
    """Return the warehouses in the stack's state by name, each with a client."""
    from lakewright_engine.model.properties import plaintext  # noqa: PLC0415 - `--help` needs no engine

    from lakewright.credentials import references as credentials  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.client import ClientPool  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.server import ServerRef  # noqa: PLC0415
    from lakewright.lakekeeper.lookups.undropping import WarehouseRef  # noqa: PLC0415

    project, backend = open_stack(directory, stack)
    settings = project.stack_config(stack)
    snapshot = backend.load(project.name, stack)
    warehouses: dict[str, WarehouseRef] = {}
    clients = ClientPool()
    for resource in snapshot.resources if snapshot else []:
        if resource.type != _TYPE or resource.delete or not resource.id:
            continue
        name = str(plaintext(resource.outputs["name"]))
        server = ServerRef.model_validate(plaintext(resource.outputs["server"]))
        warehouses[name] = WarehouseRef(
            name, resource.id, clients.get(server, lambda ref: credentials.resolve(ref, settings.get))
        )
    if not warehouses:
        raise UsageError(f"stack '{stack}' has no warehouses; run `lakewright up --stack {stack}` first")
    return warehouses


def _warehouse_by_name(warehouses: dict[str, WarehouseRef], name: str) -> WarehouseRef:
    warehouse = next((ref for ref in warehouses.values() if ref.name.casefold() == name.casefold()), None)
    if warehouse is None:
        raise UsageError(f"the stack has no warehouse `{name}`; it has: {', '.join(sorted(warehouses))}")
    return warehouse


def _find_dropped(warehouses: dict[str, WarehouseRef], table: str | None, tabular_id: str | None) -> list[DroppedTable]:
    """Return the dropped table to restore, then the other dropped tables that had its name."""
    from lakewright.lakekeeper.api.connection.errors import NothingFoundError  # noqa: PLC0415
    from lakewright.lakekeeper.lookups import undropping  # noqa: PLC0415

    if table is not None:
        name = _name(table)
        dropped_tables = undropping.find_by_name(_warehouse_by_name(warehouses, name.warehouse), name)
    else:
        dropped_tables = [
            dropped for warehouse in warehouses.values() for dropped in undropping.list_dropped(warehouse)
        ]
    if tabular_id is None:
        return dropped_tables
    if matching := [dropped for dropped in dropped_tables if dropped.table.tabular_id == tabular_id.lower()]:
        return matching
    candidates = ", ".join(f"{dropped} ({_times(dropped)})" for dropped in dropped_tables) or "none"
    raise NothingFoundError(f"no dropped table has the ID {tabular_id}; dropped tables: {candidates}")


def _name(text: str) -> QualifiedName:
    try:
        return parse_table_name(text)
    except ValueError as error:
        raise UsageError(f"{text}: {error}") from None


def _list_below(warehouses: dict[str, WarehouseRef], prefix: str | None) -> list[DroppedTable]:
    """Return the dropped tables of all warehouses, or those below a warehouse, namespace or table name."""
    from lakewright.lakekeeper.lookups import undropping  # noqa: PLC0415

    parts = parse_parts(prefix) if prefix else []
    if prefix and not parts:
        raise UsageError(f"{prefix}: expected WAREHOUSE, WAREHOUSE.NAMESPACE or WAREHOUSE.NAMESPACE.TABLE")
    selected = [_warehouse_by_name(warehouses, parts[0])] if parts else list(warehouses.values())
    dropped_tables = [dropped for warehouse in selected for dropped in undropping.list_dropped(warehouse)]
    levels = tuple(part.casefold() for part in parts)
    return [dropped for dropped in dropped_tables if dropped.name.levels[: len(levels)] == levels]


def _print_list(dropped_tables: list[DroppedTable], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"version": 1, "dropped": [_to_json(dropped) for dropped in dropped_tables]}, indent=2))
        return
    from lakewright.terminal.text_lines import format_table  # noqa: PLC0415

    head = ("NAME", "KIND", "ID", "DROPPED", "KEPT UNTIL")
    rows = [
        (
            str(dropped.name),
            dropped.table.kind,
            dropped.table.tabular_id,
            format_time(dropped.table.deleted_at),
            format_time(dropped.table.expires_at),
        )
        for dropped in dropped_tables
    ]
    print("\n".join(format_table(head, rows)))


def _to_json(dropped: DroppedTable) -> dict[str, Any]:
    warehouse = dropped.warehouse
    return {
        "warehouse": warehouse.name,
        "warehouse_id": warehouse.warehouse_id,
        **dropped.table.model_dump(mode="json"),
    }


def _times(dropped: DroppedTable) -> str:
    return f"dropped {format_time(dropped.table.deleted_at)}, kept until {format_time(dropped.table.expires_at)}"
