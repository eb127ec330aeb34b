"""`lakewright-spark executions`: list executions, drop expired results, find orphans."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright_spark.catalog.loading import load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import (
    AsJson,
    ConfigFile,
    RegistryIfNamed,
    RegistryUrl,
    Warehouse,
    duration,
    open_registry,
)
from lakewright_spark.errors import RegistryError
from lakewright_spark.plain_help import PlainHelpTyper
from lakewright_spark.result_uris import ResultNamespaces, ResultUri
from lakewright_spark.times import format_json_time, format_time

if TYPE_CHECKING:
    from pyarrow import Table

    from lakewright_spark.execution_registry.records import ExecutionRecord
    from lakewright_spark.results.cleanup import Cleaner, Orphans


REGISTRY = "LAKEWRIGHT_REGISTRY"

app = PlainHelpTyper(no_args_is_help=True, help="List executions, drop expired results, find orphans.")

TexeraUrl = Annotated[
    str | None,
    typer.Option("--texera", metavar="URL", help="URL of Texera's database, which is only read."),
]


@app.command("list")
def list_executions(*, config: ConfigFile = None, registry: RegistryUrl = None, as_json: AsJson = False) -> None:
    """List the tenant's executions and their tables, oldest first.

    Example: lakewright-spark executions list --json
    """
    with open_registry(load_config(config), registry) as opened:
        assert opened is not None
        records = list(opened.all())
    if as_json:
        print(json.dumps([_to_json(record) for record in records]))
        return
    table = printing.columns(
        "workflow", "execution", "unit", "warehouse", "status", "started", "tables", fold=("unit", "warehouse")
    )
    for record in records:
        names = (str(record.workflow), str(record.execution), record.computing_unit or "", record.warehouse or "")
        started = format_time(record.started_at)
        table.add_row(*names, record.status.value, started, str(len(record.tables)))
    printing.show(table)


@app.command()
def sweep(
    *,
    config: ConfigFile = None,
    registry: RegistryUrl = None,
    ttl: Annotated[
        timedelta,
        typer.Option(parser=duration, metavar="DURATION", help="Drop executions that ended longer ago than this."),
    ] = "24h",  # type: ignore[assignment]  # typer parses it; a day is Texera's own
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be dropped, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Drop expired executions: first their tables with all files, then their rows in the registry.

    Example: lakewright-spark executions sweep --dry-run
    """
    from lakewright_spark.results.cleanup import build_sweep_error  # noqa: PLC0415  # pyarrow takes a second to load

    with _cleaner(config, registry) as cleaner:
        swept = cleaner.sweep(datetime.now(UTC) - ttl, dry_run=dry_run)
    printing.note(cleaner.unavailable.note())
    if as_json:
        values = {
            "dry_run": dry_run,
            "executions": [_to_json(record) for record in swept.executions],
            "tables": [str(uri) for uri in swept.tables],
            "failed": {str(record): reason for record, reason in swept.failed},
        }
        print(json.dumps(values))
    else:
        done = "would drop" if dry_run else "dropped"
        print(f"{done} {len(swept.executions)} executions with {len(swept.tables)} tables")
        for uri in swept.tables:
            print(f"  {uri}")
    if problem := build_sweep_error(swept):
        raise problem


@app.command()
def orphans(
    *,
    config: ConfigFile = None,
    registry: RegistryUrl = None,
    texera: TexeraUrl = None,
    no_texera: Annotated[
        bool, typer.Option("--no-texera", help="With --drop: no Texera deployment writes to these warehouses.")
    ] = False,
    drop: Annotated[
        bool,
        typer.Option(
            "--drop", help="Drop these tables and rows. Requires a named registry, and --texera or --no-texera."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --drop: do not ask for confirmation, as in CI.")] = False,
    older_than: Annotated[
        timedelta,
        typer.Option(parser=duration, metavar="DURATION", help="Drop only tables that did not change for this long."),
    ] = "24h",  # type: ignore[assignment]
    as_json: AsJson = False,
) -> None:
    """List result tables without an execution, and executions whose tables no longer exist.

    Example: lakewright-spark executions orphans --json
    """
    from lakewright_spark.execution_registry.texera import TexeraExecutions  # noqa: PLC0415  # as above
    from lakewright_spark.results.cleanup import DroppedOrphans  # noqa: PLC0415  # as above

    if drop:
        _check_drop(registry, texera, no_texera=no_texera, yes=yes)
    with _cleaner(config, registry) as cleaner:
        other_registries = [TexeraExecutions(texera)] if texera else []
        if drop:
            cleaner.check_knows_executions(other_registries)
        orphaned, dropped = cleaner.find_orphans(other_registries), DroppedOrphans()
        printing.note(cleaner.unavailable.note())
        drop = drop and bool(orphaned.tables or orphaned.rows)
        if drop:
            if not yes:
                _list_orphans(orphaned, (), forgotten=False, err=True)
                question = f"Drop {len(orphaned.tables)} tables, and forget tables of {len(orphaned.rows)} executions?"
                typer.confirm(question, abort=True, err=True)
            dropped = cleaner.drop_orphans(orphaned, younger_stay=older_than, other_registries=other_registries)
    if as_json:
        rows = [{**_to_json(record), "missing": [str(uri) for uri in missing]} for record, missing in orphaned.rows]
        print(
            json.dumps(
                {"tables": [str(u) for u in orphaned.tables], "rows": rows, "dropped": [str(u) for u in dropped.tables]}
            )
        )
    else:
        _list_orphans(orphaned, dropped.tables, forgotten=drop)
    if error := dropped.error() or cleaner.unavailable.error():
        raise error


def has_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()


def _check_drop(registry: str | None, texera: str | None, *, no_texera: bool, yes: bool) -> None:
    """Refuse to drop without a named registry or a confirmation."""
    if not registry and not os.environ.get(REGISTRY):
        raise RegistryError(
            f"--drop: expected the registry of the tenant's executions, by --registry or ${REGISTRY}; found none. "
            "With another registry, every result would be an orphan"
        )
    if bool(texera) == no_texera:
        raise typer.BadParameter(
            "--drop: expected either --texera URL or --no-texera: results of Texera are not orphans"
        )
    if not yes and not has_terminal():
        raise typer.BadParameter("--drop: expected --yes, since there is no terminal to ask for confirmation")


def _list_orphans(orphaned: Orphans, dropped: Collection[ResultUri], *, forgotten: bool, err: bool = False) -> None:
    for uri in orphaned.tables:
        typer.echo(f"table without an execution: {uri}{' (dropped)' if uri in dropped else ''}", err=err)
    for record, missing in orphaned.rows:
        for uri in missing:
            typer.echo(f"{record} without its table: {uri}{' (forgotten)' if forgotten else ''}", err=err)
    if not orphaned.tables and not orphaned.rows:
        typer.echo("no orphans", err=err)


@contextmanager
def _cleaner(config: ConfigFile, registry: RegistryUrl) -> Generator[Cleaner, None, None]:
    from lakewright_spark.results.cleanup import Cleaner  # noqa: PLC0415  # pyarrow takes a second to load

    catalog = load_config(config)
    with open_registry(catalog, registry) as opened:
        assert opened is not None
        yield Cleaner(catalog, opened, ResultNamespaces.from_environment())


def _to_json(record: ExecutionRecord) -> dict[str, Any]:
    return {
        "workflow": record.workflow,
        "execution": record.execution,
        "computing_unit": record.computing_unit,
        "warehouse": record.warehouse,
        "submitter": record.submitter,
        "status": record.status.value,
        "started_at": format_json_time(record.started_at),
        "finished_at": record.finished_at and format_json_time(record.finished_at),
        "replaced_at": record.replaced_at and format_json_time(record.replaced_at),
        "error": record.error,
        "tables": {str(table.uri): {"rows": table.rows, "bytes": table.bytes} for table in record.tables},
    }


def read(
    address: Annotated[str, typer.Argument(help="As in vfs:///wh/NAME/wid/1/eid/1/runtimestatistics")],
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    registry: RegistryIfNamed = None,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    limit: Annotated[int, typer.Option(min=0)] = 20,
    after: Annotated[str | None, typer.Option(help="Cursor of an earlier read, or `start`.")] = None,
    count: Annotated[bool, typer.Option("--count", help="Print the number of rows only.")] = False,
) -> None:
    """Print rows of a result, one JSON object per line. With --after, the last line is the cursor.

    The warehouse comes from the address, else --warehouse, else a named registry; else it is the only warehouse.

    Example: lakewright-spark read vfs:///wh/executions/wid/1/eid/1/runtimestatistics --limit 5
    """
    from lakewright_spark.results.reader import Cursor, ResultReader  # noqa: PLC0415  # pyarrow takes a second to load

    uri = ResultUri.parse(address)
    catalog = load_config(config)
    registry_url = registry or os.environ.get("LAKEWRIGHT_REGISTRY")
    with open_registry(catalog, registry_url, none=warehouse is not None or registry_url is None) as executions:
        reader = ResultReader(catalog, warehouse, ResultNamespaces.from_environment(), executions)
        if count:
            print(reader.count(uri))
        elif after is not None:
            news = reader.read_after(uri, None if after == "start" else Cursor.parse(after), limit)
            _print_rows(news.rows)
            print(json.dumps({"cursor": str(news.cursor)}))
        else:
            _print_rows(reader.range(uri, offset, limit))


def _print_rows(rows: Table) -> None:
    for row in rows.to_pylist():
        print(json.dumps(row, default=str))


registry_app = PlainHelpTyper(no_args_is_help=True, help="Manage the database of executions.")


@registry_app.callback()
def _group() -> None:
    """Manage the database of executions."""


@registry_app.command()
def upgrade(*, registry: RegistryUrl = None) -> None:
    """Create or upgrade the tables to this release's version.

    Example: lakewright-spark registry upgrade
    """
    from lakewright_spark.execution_registry import database  # noqa: PLC0415  # SQLAlchemy takes a while to load

    engine = database.connect(registry or database.default_url())
    version = database.upgrade(engine)
    print(f"{database.redact(engine.url)} is at version {version}")
