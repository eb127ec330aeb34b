"""`lakewright-spark executions`: list what ran, drop what is old, find what lost its other half."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright_spark.cli import printing
from lakewright_spark.cli.durations import duration
from lakewright_spark.cli.options import AsJson, ConfigFile, RegistryUrl, load_config, open_registry
from lakewright_spark.results.uris import ResultNamespaces

if TYPE_CHECKING:
    from lakewright_spark.registry.records import ExecutionRecord
    from lakewright_spark.results.cleanup import Cleaner

app = typer.Typer(no_args_is_help=True, help="List what ran, drop what is old, find what lost its other half.")

TexeraUrl = Annotated[
    str | None,
    typer.Option("--texera", metavar="URL", help="Texera's own database, read as well and never changed."),
]


@app.command("list")
def list_executions(*, config: ConfigFile = None, registry: RegistryUrl = None, as_json: AsJson = False) -> None:
    """What the tenant's executions wrote, the oldest first."""
    with open_registry(load_config(config), registry) as opened:
        assert opened is not None
        records = list(opened.all())
    if as_json:
        print(json.dumps([_told(record) for record in records]))
        return
    table = printing.columns(
        "workflow", "execution", "unit", "warehouse", "status", "started (UTC)", "tables", fold=("unit", "warehouse")
    )
    for record in records:
        names = (str(record.workflow), str(record.execution), record.computing_unit or "", record.warehouse or "")
        started = f"{record.started_at:%Y-%m-%d %H:%M}"
        table.add_row(*names, record.status.value, started, str(len(record.tables)))
    printing.show(table)


@app.command()
def sweep(
    *,
    config: ConfigFile = None,
    registry: RegistryUrl = None,
    ttl: Annotated[
        timedelta, typer.Option(parser=duration, metavar="DURATION", help="Drop what ended longer ago than this.")
    ] = "24h",  # type: ignore[assignment]  # typer parses it; a day is Texera's own
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Drop expired executions: their tables from the catalog, files and all, and only then their rows."""
    from lakewright_spark.results.cleanup import failure  # noqa: PLC0415  # pyarrow takes a second to load

    with _cleaner(config, registry) as cleaner:
        swept = cleaner.sweep(datetime.now(UTC) - ttl, dry_run=dry_run)
    if as_json:
        told = {
            "dry_run": dry_run,
            "executions": [_told(record) for record in swept.executions],
            "tables": [str(uri) for uri in swept.tables],
            "failed": {str(record): reason for record, reason in swept.failed},
        }
        print(json.dumps(told))
    else:
        done = "would drop" if dry_run else "dropped"
        print(f"{done} {len(swept.executions)} executions with {len(swept.tables)} tables")
        for uri in swept.tables:
            print(f"  {uri}")
    if problem := failure(swept):
        raise problem


@app.command()
def orphans(
    *,
    config: ConfigFile = None,
    registry: RegistryUrl = None,
    texera: TexeraUrl = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop such tables, and forget such rows.")] = False,
    older_than: Annotated[
        timedelta,
        typer.Option(parser=duration, metavar="DURATION", help="Of the tables, drop those unchanged for so long."),
    ] = "24h",  # type: ignore[assignment]
    as_json: AsJson = False,
) -> None:
    """Tables whose execution nobody knows, and executions whose tables are gone."""
    from lakewright_spark.registry.texera import TexeraExecutions  # noqa: PLC0415  # as above

    with _cleaner(config, registry) as cleaner:
        others = [TexeraExecutions(texera)] if texera else []
        found = cleaner.orphans(others)
        dropped = cleaner.drop_orphans(found, younger_stay=older_than, others=others)[0] if drop else []
    if as_json:
        rows = [{**_told(record), "missing": [str(uri) for uri in missing]} for record, missing in found.rows]
        print(
            json.dumps({"tables": [str(u) for u in found.tables], "rows": rows, "dropped": [str(u) for u in dropped]})
        )
        return
    for uri in found.tables:
        print(f"table without an execution: {uri}{' (dropped)' if uri in dropped else ''}")
    for record, missing in found.rows:
        for uri in missing:
            print(f"{record} without its table: {uri}{' (forgotten)' if drop else ''}")
    if not found.tables and not found.rows:
        print("no orphans")


@contextmanager
def _cleaner(config: ConfigFile, registry: RegistryUrl) -> Iterator[Cleaner]:
    from lakewright_spark.results.cleanup import Cleaner  # noqa: PLC0415  # pyarrow takes a second to load

    catalog = load_config(config)
    with open_registry(catalog, registry) as opened:
        assert opened is not None
        yield Cleaner(catalog, opened, ResultNamespaces.from_environment())


def _told(record: ExecutionRecord) -> dict[str, Any]:
    return {
        "workflow": record.workflow,
        "execution": record.execution,
        "computing_unit": record.computing_unit,
        "warehouse": record.warehouse,
        "submitter": record.submitter,
        "status": record.status.value,
        "started_at": record.started_at.isoformat(),
        "finished_at": record.finished_at and record.finished_at.isoformat(),
        "replaced_at": record.replaced_at and record.replaced_at.isoformat(),
        "error": record.error,
        "tables": {str(table.uri): {"rows": table.rows, "bytes": table.bytes} for table in record.tables},
    }
