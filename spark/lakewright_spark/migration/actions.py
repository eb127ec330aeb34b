"""The actions of `lakewright-spark migrate` on the selected tables: plan, register, cut over, undo, finish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.ledger import Entry, Ledger, Method, Step, open_ledger
from lakewright_spark.migration.plan import Patterns, Plan, build_plan
from lakewright_spark.migration.run import Migration, build_error, list_open_entries
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.migration.verify import Depth


class Action(Enum):
    """An action on tables, and the step that the tables have completed afterwards."""

    PLAN = Step.PLANNED
    REGISTER = Step.VERIFIED
    CUT_OVER = Step.CUT_OVER
    UNDO = Step.UNDONE
    FINISH = Step.FINISHED


@dataclass(frozen=True)
class MigrationRoute:
    """Source and target of a migration."""

    source: CatalogConfig
    source_warehouse: str
    target: CatalogConfig
    target_warehouse: str

    def __str__(self) -> str:
        """Return the text form, by which a ledger knows its migration."""
        return f"from {self.source.uri} {self.source_warehouse} to {self.target.uri} {self.target_warehouse}"


@dataclass(frozen=True)
class MigrationResult:
    """The plan, and the selected tables after an action."""

    plan: Plan
    entries: Sequence[Entry]
    error: MigrationError | None = None


def migrate_tables(
    route: MigrationRoute, ledger_path: Path, action: Action, *, patterns: tuple[str, ...], copy: bool, depth: str
) -> MigrationResult:
    """Run an action on the selected tables.

    Args:
        route: Source and target.
        ledger_path: File of the ledger; it is created if it does not exist.
        action: The action.
        patterns: Patterns of table names; all tables by default.
        copy: Whether to copy the files of tables that the ledger does not have yet.
        depth: How much of the rows is compared, a value of `Depth`.

    Raises:
        MigrationError: The ledger cannot be used, or the whole migration is refused.
    """
    if route.target.kind == "hadoop":
        raise MigrationError("--to: expected a catalog of kind lakekeeper, rest or jdbc, found hadoop")
    if (route.source.uri, route.source.project_id, route.source_warehouse) == (
        route.target.uri,
        route.target.project_id,
        route.target_warehouse,
    ):
        raise MigrationError("--from and --to: expected two warehouses, found the same warehouse twice")
    with open_ledger(ledger_path, str(route)) as ledger:
        migration = Migration(Endpoint.open(route.source, route.source_warehouse), route.target, ledger)
        return _act(migration, route, ledger, action, patterns=Patterns(patterns), copy=copy, depth=Depth(depth))


def _act(
    migration: Migration,
    route: MigrationRoute,
    ledger: Ledger,
    action: Action,
    *,
    patterns: Patterns,
    copy: bool,
    depth: Depth,
) -> MigrationResult:
    target = migration.open_target(route.target_warehouse)
    plan = Plan(())
    if action in {Action.PLAN, Action.REGISTER}:
        method = Method.COPY if copy else Method.REGISTER
        plan = build_plan(migration.source, patterns, method, lambda _: target, ledger.list_entries())
        if action is Action.PLAN:
            return MigrationResult(plan, plan.entries)
        ledger.add(plan.entries)
    selected = [entry for entry in ledger.list_entries() if patterns.select(entry.identifier)]
    if not selected and not plan.blocked:
        raise MigrationError(f"{migration.source}: expected tables that match the patterns, found none")
    acts: dict[Action, Callable[[TableMigration], None]] = {
        Action.REGISTER: lambda table: table.register(depth),
        Action.CUT_OVER: TableMigration.cut_over,
        Action.UNDO: TableMigration.undo,
        Action.FINISH: TableMigration.finish,
    }
    if action is Action.CUT_OVER and (early := [entry for entry in selected if not _is_verified(entry)]):
        raise MigrationError(
            f"expected tables that are verified, found {len(early)} others, such as {early[0]}: run without --cut-over"
        )
    migration.run(list_open_entries(action.value, selected), acts[action])
    entries = [ledger.find(entry) for entry in selected]
    return MigrationResult(plan, entries, build_error(entries, plan.blocked))


def _is_verified(entry: Entry) -> bool:
    return entry.step in {Step.VERIFIED, Step.CUT_OVER, Step.FINISHED, Step.UNDONE}
