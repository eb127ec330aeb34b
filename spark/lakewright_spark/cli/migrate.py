"""`lakewright-spark migrate`: move tables from one catalog to another, step by step, with a ledger."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config_pair
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import AsJson, FromWarehouse, TablePatterns, ToWarehouse, VerifyDepth

if TYPE_CHECKING:
    from lakewright_spark.migration.ledger import Entry
    from lakewright_spark.migration.plan import Plan

DEFAULT_LEDGER = Path("migration.db")


def migrate(
    *,
    source: Annotated[
        Path, typer.Option("--from", metavar="CONFIG", help="Catalog configuration (JSON) that has the tables now.")
    ],
    target: Annotated[
        Path, typer.Option("--to", metavar="CONFIG", help="Catalog configuration (JSON) that gets the tables.")
    ],
    from_warehouse: FromWarehouse = None,
    to_warehouse: ToWarehouse = None,
    tables: TablePatterns = None,
    ledger: Annotated[Path, typer.Option("--ledger", metavar="FILE", help="File with the state of the migration.")] = (
        DEFAULT_LEDGER
    ),
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the files to the target's locations. Default: they remain in place.")
    ] = False,
    verify: Annotated[
        VerifyDepth, typer.Option("--verify", help="Rows to compare: all, of some files, or none.")
    ] = VerifyDepth.FULL,
    grants: Annotated[
        bool,
        typer.Option(
            "--grants",
            help="With --plan and --cut-over: give the target the grants of the source, between Lakekeepers.",
        ),
    ] = False,
    texera: Annotated[
        str | None,
        typer.Option(
            "--texera",
            metavar="URL",
            help="Texera's database. Results go to the warehouse of their user, and --cut-over updates their rows.",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print tables, bytes, time and losses, and change nothing.")
    ] = False,
    cut_over: Annotated[
        bool, typer.Option("--cut-over", help="Register last changes and move the writers to the target.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Give the tables back to the source, with all commits.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Remove the tables from the source, and the fence from the target.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Migrate tables between catalogs. Without another option: fence them, register them in the target, and compare.

    Example: lakewright-spark migrate --from old.json --to new.json --plan
    """
    from lakewright_spark.migration.actions import Action, MigrationRoute, migrate_tables  # noqa: PLC0415  # loads PyIceberg

    requested = [
        action
        for action, is_requested in (
            (Action.PLAN, plan),
            (Action.CUT_OVER, cut_over),
            (Action.UNDO, undo),
            (Action.FINISH, finish),
        )
        if is_requested
    ]
    if len(requested) > 1:
        raise typer.BadParameter("expected at most one of --plan, --cut-over, --undo and --finish")
    if grants and not (plan or cut_over):
        raise typer.BadParameter("--grants: expected --plan or --cut-over with it")
    old, new = load_config_pair(source, target)
    if texera and to_warehouse:
        raise typer.BadParameter("--texera: expected no --to-warehouse, since each user has a warehouse")
    if texera and grants:
        raise typer.BadParameter("--texera: expected no --grants, since each user's warehouse has grants of its own")
    target_warehouse = None if texera else choose_warehouse(new, to_warehouse)
    route = MigrationRoute(old, choose_warehouse(old, from_warehouse), new, target_warehouse)
    result = migrate_tables(
        route,
        ledger,
        requested[0] if requested else Action.REGISTER,
        patterns=tuple(tables or ()),
        copy=copy,
        grants=grants,
        depth=verify.value,
        texera=texera,
    )
    _print(result.plan, result.entries, as_json=as_json)
    if result.error:
        raise result.error


def _print(plan: Plan, entries: Sequence[Entry], *, as_json: bool) -> None:
    if as_json:
        values: dict[str, Any] = {
            "tables": [entry.to_json() for entry in entries if not entry.is_view],
            "views": [entry.to_json() for entry in entries if entry.is_view],
            "blocked": dict(plan.blocked),
            "skipped": dict(plan.skipped),
            "losses": list(plan.losses),
            "grants": list(plan.grants),
            "bytes": plan.bytes,
            "seconds": round(plan.seconds, 1),
        }
        print(json.dumps(values))
        return
    rows = printing.columns("table", "warehouse", "method", "step", "rows", "bytes", fold=("table",))
    for entry in entries:
        rows.add_row(
            str(entry), entry.warehouse, entry.method.value, entry.step.value, str(entry.rows), str(entry.bytes)
        )
    printing.show(rows)
    for name, reason in plan.blocked.items():
        print(f"left out: {name}: {reason}")
    for name, reason in plan.skipped.items():
        print(f"not part of this migration: {name}: {reason}")
    for grant in plan.grants:
        print(f"grant: {grant}")
    for loss in plan.losses:
        print(f"loss: {loss}")
    if unprotected := [entry for entry in entries if entry.is_unprotected]:
        printing.note(
            f"the target does not protect {len(unprotected)} tables from drops: drop none of them before --finish"
        )
    stops = {str(entry): entry.stopped_seconds for entry in entries if entry.stopped_seconds is not None}
    if stops:
        longest = max(stops, key=lambda name: stops[name])
        print(f"writers of a table were stopped for at most {stops[longest]:.1f} s ({longest})")
    steps = Counter(entry.step.value for entry in entries)
    counts = ", ".join(f"{count} {step}" for step, count in steps.items()) or "no tables and views"
    print(f"{counts}; {plan.bytes} bytes; about {plan.seconds:.0f} s for the whole migration")
