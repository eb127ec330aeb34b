"""Commands `standby copy`, `standby status` and `standby promote`: copies of a warehouse in another catalog."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config, load_config_pair, read_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import AsJson, FromWarehouse, TablePatterns, ToWarehouse, VerifyDepth, duration
from lakewright_spark.errors import StandbyError
from lakewright_spark.plain_help import PlainHelpTyper
from lakewright_spark.times import format_time

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig
    from lakewright_spark.standby.actions import Standby
    from lakewright_spark.standby.status import TableStatus

app = PlainHelpTyper(
    no_args_is_help=True, help="Copy tables and views to another bucket and catalog, and let them take over."
)

Source = Annotated[
    Path, typer.Option("--from", metavar="CONFIG", help="Catalog configuration (JSON) that has the tables.")
]
Target = Annotated[
    Path, typer.Option("--to", metavar="CONFIG", help="Catalog configuration (JSON) that has the copies.")
]


@app.callback()
def _group() -> None:
    """Copy tables and views to another bucket and catalog, and let them take over."""


@app.command("copy")
def copy(
    *,
    source: Source,
    target: Target,
    from_warehouse: FromWarehouse = None,
    to_warehouse: ToWarehouse = None,
    tables: TablePatterns = None,
    verify: Annotated[
        VerifyDepth, typer.Option("--verify", help="Rows to compare: all, of some files, or none.")
    ] = VerifyDepth.METADATA,
    as_json: AsJson = False,
) -> None:
    """Copy what the standby lacks of each table and view, and compare. Run it every night.

    Example: lakewright-spark standby copy --from main.json --to standby.json
    """
    from lakewright_spark.migration.verify import Depth  # noqa: PLC0415  # loads PyIceberg

    standby = _open(load_config_pair(source, target), from_warehouse, to_warehouse, tables)
    _print(standby.copy(Depth(verify.value), datetime.now(UTC)), as_json=as_json)


@app.command("status")
def status(
    *,
    source: Source,
    target: Target,
    from_warehouse: FromWarehouse = None,
    to_warehouse: ToWarehouse = None,
    tables: TablePatterns = None,
    max_lag: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="Fail if a table is further behind its source, such as 26h."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tables and views with the age of their last copy, and how far they are behind. Nothing is changed.

    Example: lakewright-spark standby status --from main.json --to standby.json --max-lag 26h
    """
    standby = _open(load_config_pair(source, target), from_warehouse, to_warehouse, tables)
    _print(standby.measure(datetime.now(UTC)), max_lag, as_json=as_json)


@app.command("promote")
def promote(
    *,
    source: Source,
    target: Target,
    from_warehouse: FromWarehouse = None,
    to_warehouse: ToWarehouse = None,
    tables: TablePatterns = None,
    is_source_lost: Annotated[
        bool,
        typer.Option("--source-lost", help="Promote the last copies without the source. Later commits are lost."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the source's writers, copy their last commits, and let writers use the standby.

    Example: lakewright-spark standby promote --from main.json --to standby.json
    """
    configs = (read_config(source), load_config(target)) if is_source_lost else load_config_pair(source, target)
    standby = _open(configs, from_warehouse, to_warehouse, tables)
    _print(standby.promote(datetime.now(UTC), is_source_lost=is_source_lost), as_json=as_json)


def _open(
    configs: tuple[CatalogConfig, CatalogConfig],
    source_warehouse: str | None,
    target_warehouse: str | None,
    tables: list[str] | None,
) -> Standby:
    from lakewright_spark.standby.actions import Standby  # noqa: PLC0415  # loads PyIceberg

    names = choose_warehouse(configs[0], source_warehouse), choose_warehouse(configs[1], target_warehouse)
    return Standby.open(configs[0], names[0], configs[1], names[1], *tables or ())


def _print(statuses: Sequence[TableStatus], max_lag: timedelta | None = None, *, as_json: bool) -> None:
    """Print the tables, and raise StandbyError if some failed or are too far behind."""
    from lakewright_spark.standby.status import find_problems, format_lag  # noqa: PLC0415  # loads PyIceberg

    if as_json:
        print(json.dumps({"tables": [status.to_json() for status in statuses]}))
    else:
        rows = printing.columns("table", "state", "copied", "behind", "snapshots", "detail", fold=("table", "detail"))
        for status in statuses:
            copied = format_time(status.copied_at) if status.copied_at else ""
            lag = format_lag(status.lag) if status.lag else ""
            rows.add_row(status.name, status.state.value, copied, lag, str(status.snapshots or ""), status.detail)
        printing.show(rows)
        print(_count([status for status in statuses if not status.is_view]) or "no tables")
        if views := [status for status in statuses if status.is_view]:
            print(f"views: {_count(views)}")
    problems = find_problems(statuses, max_lag)
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        kinds = "tables and views" if any(status.is_view for status in statuses) else "tables"
        raise StandbyError(f"{len(problems)} of {len(statuses)} {kinds} need attention: {problems[0]}{more}")


def _count(statuses: Sequence[TableStatus]) -> str:
    counts = Counter(status.state.value for status in statuses)
    return ", ".join(f"{count} {state}" for state, count in counts.items())
