"""`lakewright undrop`: list the dropped tables of a stack's warehouses, and bring one back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, existing_stack
from lakewright.names.table_name import QualifiedName, parse_parts, parse_table_name

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lakewright.lakekeeper.lookups.undropping import DroppedTable, WarehouseRef

_TYPE = "pulumi-python:dynamic/lakekeeper:Warehouse"


def undrop(
    stack: StackName,
    *,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="WAREHOUSE.NAMESPACE.TABLE", help="A part with a dot in it stands in quotes: w.n.'\"a.b\"'."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List what can be brought back.")] = False,
    tabular_id: Annotated[str | None, typer.Option("--id", help="This one, of several that had the name.")] = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bring back a dropped table or view, the one dropped last if several had the name. Needs the stack's passphrase.

    Tables can be brought back while the warehouse's soft deletion keeps them.
    """
    if not show and table is None and tabular_id is None:
        raise UsageError("name the table: lakewright undrop --stack NAME WAREHOUSE.NAMESPACE.TABLE, or use --list")
    warehouses = _warehouses(stack, directory)
    if show:
        _list(_beneath(warehouses, table), as_json=as_json)
        return
    chosen, *others = _meant(warehouses, table, tabular_id)
    from lakewright.lakekeeper.lookups import undropping  # noqa: PLC0415 - `--help` needs no client

    undropping.bring_back(chosen)
    if as_json:
        print(json.dumps(_described(chosen), indent=2))
        return
    print(f"Brought back {chosen}, {_times(chosen)}.")
    for other in others:
        print(f"Dropped earlier under the same name: {other.table.tabular_id}, {_times(other)}; --id names it.")


def _warehouses(stack: str, directory: Path) -> dict[str, WarehouseRef]:
    """The stack's warehouses by name, as its state has them, with a client for each."""
    from lakewright_engine.model.properties import plaintext  # noqa: PLC0415 - `--help` needs no engine

    from lakewright.credentials import references as credentials  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.client import ClientPool  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.server import ServerRef  # noqa: PLC0415
    from lakewright.lakekeeper.lookups.undropping import WarehouseRef  # noqa: PLC0415

    project, backend = existing_stack(directory, stack)
    settings = project.stack_config(stack)
    snapshot = backend.load(project.name, stack)
    found: dict[str, WarehouseRef] = {}
    clients = ClientPool()
    for one in snapshot.resources if snapshot else []:
        if one.type != _TYPE or one.delete or not one.id:
            continue
        name, server = str(plaintext(one.outputs["name"])), ServerRef.model_validate(plaintext(one.outputs["server"]))
        found[name] = WarehouseRef(
            name, one.id, clients.get(server, lambda ref: credentials.resolve(ref, settings.get))
        )
    if not found:
        raise UsageError(f"stack '{stack}' has no warehouses; run `lakewright up --stack {stack}` first")
    return found


def _one_of(warehouses: dict[str, WarehouseRef], name: str) -> WarehouseRef:
    found = next((one for one in warehouses.values() if one.name.casefold() == name.casefold()), None)
    if found is None:
        raise UsageError(f"the stack has no warehouse `{name}`; it has: {', '.join(sorted(warehouses))}")
    return found


def _meant(warehouses: dict[str, WarehouseRef], table: str | None, tabular_id: str | None) -> list[DroppedTable]:
    """The dropped table that is to come back, and the others that had its name."""
    from lakewright.lakekeeper.api.connection.errors import NothingFound  # noqa: PLC0415
    from lakewright.lakekeeper.lookups import undropping  # noqa: PLC0415

    if table is not None:
        name = _name(table)
        found = undropping.find_by_name(_one_of(warehouses, name.warehouse), name)
    else:
        found = [one for warehouse in warehouses.values() for one in undropping.dropped(warehouse)]
    if tabular_id is None:
        return found
    if chosen := [one for one in found if one.table.tabular_id == tabular_id.lower()]:
        return chosen
    there = ", ".join(f"{one} ({_times(one)})" for one in found) or "none"
    raise NothingFound(f"nothing that was dropped has the id {tabular_id}; there are: {there}")


def _name(text: str) -> QualifiedName:
    try:
        return parse_table_name(text)
    except ValueError as error:
        raise UsageError(f"{text}: {error}") from None


def _beneath(warehouses: dict[str, WarehouseRef], prefix: str | None) -> list[DroppedTable]:
    """What can be brought back in all warehouses, or below `WAREHOUSE`, `WAREHOUSE.NAMESPACE` or a table's name."""
    from lakewright.lakekeeper.lookups import undropping  # noqa: PLC0415

    parts = parse_parts(prefix) if prefix else []
    if prefix and not parts:
        raise UsageError(f"{prefix}: expected WAREHOUSE, WAREHOUSE.NAMESPACE or WAREHOUSE.NAMESPACE.TABLE")
    asked = [_one_of(warehouses, parts[0])] if parts else list(warehouses.values())
    found = [one for warehouse in asked for one in undropping.dropped(warehouse)]
    return [one for one in found if one.name.levels[: len(parts)] == tuple(part.casefold() for part in parts)]


def _list(found: list[DroppedTable], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_described(one) for one in found], indent=2))
        return
    head = ("NAME", "KIND", "ID", "DROPPED", "GONE AFTER")
    rows = [
        (str(one.name), one.table.kind, one.table.tabular_id, _utc(one.table.deleted_at), _utc(one.table.expires_at))
        for one in found
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _described(one: DroppedTable) -> dict[str, Any]:
    warehouse = one.warehouse
    return {"warehouse": warehouse.name, "warehouse_id": warehouse.warehouse_id, **one.table.model_dump(mode="json")}


def _times(one: DroppedTable) -> str:
    return f"dropped {_utc(one.table.deleted_at)}, kept until {_utc(one.table.expires_at)}"


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
