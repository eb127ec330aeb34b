"""The actions of `lakewright-spark migrate` on the selected tables: plan, register, cut over, undo, finish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path

from pyiceberg.typedef import Identifier

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, MigrationError
from lakewright_spark.migration.endpoint import Endpoint, rename_moved
from lakewright_spark.migration.grants import GrantPlan, carry_grants, plan_grants, revert_grants, select_grants
from lakewright_spark.migration.ledger import Entry, Ledger, Method, Step, open_ledger
from lakewright_spark.migration.plan import Patterns, Plan, build_plan
from lakewright_spark.migration.run import Migration, build_error, list_open_entries
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.migration.texera import (
    FINISHED_REASON,
    LOST_REASON,
    PARTLY_FINISHED_REASON,
    RUNNING_REASON,
    UNDONE_REASON,
    ExecutionKey,
    TexeraRows,
    find_execution,
)
from lakewright_spark.migration.verify import Depth
from lakewright_spark.migration.view_steps import ViewMigration
from lakewright_spark.result_uris import ResultNamespaces


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
    target_warehouse: str | None
    """None: the warehouse of each user."""

    def __str__(self) -> str:
        """Return the text form, by which a ledger knows its migration."""
        target = self.target_warehouse or "the warehouse of each user"
        return f"from {self.source.uri} {self.source_warehouse} to {self.target.uri} {target}"


@dataclass(frozen=True)
class MigrationResult:
    """The plan, and the selected tables after an action."""

    plan: Plan
    entries: Sequence[Entry]
    error: MigrationError | None = None


def migrate_tables(
    route: MigrationRoute,
    ledger_path: Path,
    action: Action,
    *,
    patterns: tuple[str, ...] = (),
    copy: bool = False,
    grants: bool = False,
    depth: str = Depth.FULL.value,
    texera: str | None = None,
) -> MigrationResult:
    """Run an action on the selected tables.

    Args:
        route: Source and target.
        ledger_path: File of the ledger; it is created if it does not exist.
        action: The action.
        patterns: Patterns of table names; all tables by default.
        copy: Whether to copy the files of tables that the ledger does not have yet.
        grants: Whether the target gets the source's grants at the cut-over.
        depth: How much of the rows is compared, a value of `Depth`.
        texera: Address of Texera's database, if the tables are results of its executions.

    Raises:
        MigrationError: The ledger cannot be used, or the whole migration is refused.
    """
    _check_route(route)
    rows = TexeraRows(texera, route.target) if texera else None
    try:
        with open_ledger(ledger_path, str(route)) as ledger:
            source = Endpoint.open(route.source, route.source_warehouse)
            migration = Migration(source, route.target, ledger)
            run = _MigrationRun(
                migration, route, Patterns(patterns), Method.COPY if copy else Method.REGISTER, rows, grants
            )
            return run.plan_only() if action is Action.PLAN else run.act(action, Depth(depth))
    finally:
        if rows:
            rows.close()


def _check_route(route: MigrationRoute) -> None:
    if route.target.kind == "hadoop":
        raise MigrationError("--to: expected a catalog of kind lakekeeper, rest or jdbc, found hadoop")
    if (route.source.uri, route.source.project_id, route.source_warehouse) == (
        route.target.uri,
        route.target.project_id,
        route.target_warehouse,
    ):
        raise MigrationError("--from and --to: expected two warehouses, found the same warehouse twice")


@dataclass(frozen=True)
class _MigrationRun:
    """One run of the command."""

    migration: Migration
    route: MigrationRoute
    patterns: Patterns
    method: Method
    texera: TexeraRows | None
    has_grants: bool
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces.from_environment)

    def plan_only(self) -> MigrationResult:
        """Return the plan, and change nothing."""
        plan = self._build_plan()
        if self.has_grants:
            plan = _add_grants(plan, self._plan_grants(plan.entries))
        elif self.route.source.kind in {"lakekeeper", "rest"}:
            loss = "grants of the source are not migrated: add --grants, or declare them in the target's spec"
            plan = replace(plan, losses=(*plan.losses, loss))
        return MigrationResult(plan, plan.entries)

    def act(self, action: Action, depth: Depth) -> MigrationResult:
        """Run an action on the selected tables of the ledger, and for `REGISTER` on new tables."""
        ledger, plan = self.migration.ledger, Plan(())
        if action is Action.REGISTER:
            plan = self._build_plan()
            ledger.add(plan.entries)
            self.migration.loaded_tables = plan.tables
        selected, plan = self._leave_out(action, self._select(ledger.list_entries()), plan)
        if not (selected or plan.blocked or plan.skipped):
            raise MigrationError(f"{self.migration.source}: expected tables to migrate, found none")
        if action is Action.CUT_OVER and (early := [entry for entry in selected if not _is_verified(entry)]):
            raise MigrationError(
                f"expected tables that are verified, found {len(early)} others, such as {early[0]}: run without "
                "--cut-over"
            )
        acts: dict[Action, Callable[[TableMigration | ViewMigration], None]] = {
            Action.REGISTER: lambda item: item.register(depth),
            Action.CUT_OVER: lambda item: item.cut_over(depth),
            Action.UNDO: lambda item: item.undo(),
            Action.FINISH: lambda item: item.finish(),
        }
        grant_plan = None
        if action is Action.CUT_OVER:
            self._check_executions(selected)
            if self.has_grants:
                grant_plan = self._plan_grants(selected)  # before tables move, since it can fail
            self._add_warehouses(list_open_entries(Step.CUT_OVER, selected))
        for entry in selected:
            if entry.error:  # an earlier command failed; this action may leave the table as it is
                ledger.record(replace(entry, error=""))
        open_tables = {entry.identifier for entry in list_open_entries(action.value, selected)}

        def act_if_open(item: TableMigration | ViewMigration) -> None:
            if item.entry.identifier in open_tables:
                acts[action](item)

        if action is Action.FINISH:
            open_entries = list_open_entries(Step.FINISHED, selected)
            self.migration.run(self._group(open_entries), acts[action], prepare=self._prepare_finish)
        else:
            self.migration.run(self._group(selected), act_if_open, complete=self._find_completion(action))
        entries = [ledger.find(entry) for entry in selected]
        notes = [f"{entry}: {entry.note}" for entry in entries if entry.note]
        notes += self.texera.list_notes() if self.texera else []
        plan = replace(plan, entries=tuple(entries), losses=(*plan.losses, *notes))
        error = build_error(entries, plan.blocked)
        try:
            if grant_plan is not None:
                plan = _add_grants(plan, grant_plan)
                moved_entries = [entry for entry in entries if entry.step is Step.CUT_OVER]
                carry_grants(select_grants(grant_plan, moved_entries), self._open_target(), ledger)
            if action is Action.UNDO:
                revert_grants(ledger, self.migration.open_target)
        except LakewrightSparkError as grant_error:
            error = MigrationError("; ".join(str(reason) for reason in (error, grant_error) if reason))
        return MigrationResult(plan, entries, error)

    def _plan_grants(self, entries: Sequence[Entry]) -> GrantPlan:
        return plan_grants(self.migration.source, self._open_target(), entries, is_whole=not self.patterns.texts)

    def _open_target(self) -> Endpoint:
        return self.migration.open_target(self.route.target_warehouse or "")

    def _build_plan(self) -> Plan:
        existing_entries = self.migration.ledger.list_entries()
        return build_plan(self.migration.source, self.patterns, self.method, self._choose_target, existing_entries)

    def _choose_target(self, identifier: Identifier) -> Endpoint | str:
        if self.texera is None:
            return self._open_target()
        warehouse = self.texera.choose_warehouse(identifier, self.namespaces)
        return warehouse if isinstance(warehouse, str) else self.migration.open_target(warehouse.name)

    def _select(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the tables that match the patterns, and the other tables of their executions."""
        selected = [entry for entry in entries if self.patterns.select(entry.identifier)]
        if self.texera is None:
            return selected
        keys = {self._find_key(entry) for entry in selected}
        return [entry for entry in entries if self._find_key(entry) in keys]

    def _group(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Return the tables of each execution together; other tables alone."""
        if self.texera is None:
            return [[entry] for entry in entries]
        groups: defaultdict[ExecutionKey | None, list[Entry]] = defaultdict(list)
        for entry in entries:
            groups[self._find_key(entry)].append(entry)
        return list(groups.values())

    def _find_key(self, entry: Entry) -> ExecutionKey | None:
        return find_execution(entry.identifier, self.namespaces)

    def _leave_out(self, action: Action, entries: list[Entry], plan: Plan) -> tuple[list[Entry], Plan]:
        """Return the entries that an action can change, and the plan with the reasons for the remaining entries."""
        lost = self._find_lost(entries)
        entries = [entry for entry in entries if entry.identifier not in lost]
        plan = replace(plan, skipped={**plan.skipped, **{".".join(identifier): LOST_REASON for identifier in lost}})
        if action is Action.REGISTER:
            # The plan has added the undone tables that can be migrated again.
            return [entry for entry in entries if entry.step is not Step.UNDONE], plan
        if action is Action.CUT_OVER:
            keys = self._find_running(entries)
            left_out = [entry for entry in entries if self._find_key(entry) in keys]
            plan = replace(plan, skipped={**plan.skipped, **dict.fromkeys(map(str, left_out), RUNNING_REASON)})
        elif action is Action.UNDO:
            keys = self._find_finished(entries)
            left_out = [entry for entry in entries if self._find_key(entry) in keys]
            reasons = {Step.FINISHED: FINISHED_REASON, Step.UNDONE: UNDONE_REASON}
            skipped = {str(entry): reasons[entry.step] for entry in left_out if entry.step in reasons}
            blocked = {str(entry): PARTLY_FINISHED_REASON for entry in left_out if entry.step not in reasons}
            plan = replace(plan, skipped={**plan.skipped, **skipped}, blocked=blocked)
        else:
            return entries, plan
        return [entry for entry in entries if self._find_key(entry) not in keys], plan

    def _find_lost(self, entries: Sequence[Entry]) -> set[Identifier]:
        """Return the tables of executions that the source lost before their cut-over, as Texera drops earlier results.

        A table that only an interrupted undo has taken from the source is not lost: the target has its other name.
        """
        if self.texera is None:
            return set()
        early_steps = {Step.PLANNED, Step.FENCED, Step.REGISTERED, Step.VERIFIED}
        early = [entry for entry in entries if entry.step in early_steps and self._find_key(entry) is not None]
        source = self.migration.source
        existing_names = set(source.list_all_tables()) if early else set[Identifier]()
        return {
            entry.identifier
            for entry in early
            if existing_names.isdisjoint((entry.identifier, rename_moved(entry.identifier)))
            and source.find_table(entry.identifier) is None
            and self.migration.open_target(entry.warehouse).mover.load_stopped(entry.identifier) is None
        }

    def _find_finished(self, entries: Sequence[Entry]) -> set[ExecutionKey]:
        """Return the executions with a finished table: the source does not have all of their tables."""
        if self.texera is None:
            return set()
        keys = {self._find_key(entry) for entry in entries if entry.step is Step.FINISHED}
        return {key for key in keys if key is not None}

    def _find_running(self, entries: Sequence[Entry]) -> set[ExecutionKey]:
        """Return the executions that have not ended, and have tables that are not cut over.

        Releases before this check registered tables of executions that were pausing.
        """
        if self.texera is None:
            return set()
        keys = {self._find_key(entry) for entry in list_open_entries(Step.CUT_OVER, entries)}
        return {key for key in keys if key is not None and self.texera.is_running(key)}

    def _add_warehouses(self, entries: Sequence[Entry]) -> None:
        """Add the rows of the users' warehouses before tables move, since a row can be refused."""
        if self.texera is None:
            return
        keys = ((self._find_key(entry), entry.warehouse) for entry in entries)
        self.texera.add_warehouses((key, warehouse) for key, warehouse in keys if key is not None)

    def _check_executions(self, entries: Sequence[Entry]) -> None:
        """Raise MigrationError if the source has a table of an execution that the ledger does not have."""
        if self.texera is None:
            return
        keys = {self._find_key(entry) for entry in entries}
        in_ledger = {entry.identifier for entry in self.migration.ledger.list_entries()}
        for identifier in self.migration.source.list_tables():
            if identifier not in in_ledger and find_execution(identifier, self.namespaces) in keys:
                raise MigrationError(
                    f"table {'.'.join(identifier)} is not migrated, and the tables of an execution move together: run "
                    "without --cut-over first"
                )

    def _find_completion(self, action: Action) -> Callable[[Sequence[Entry]], None] | None:
        if self.texera is None or action not in {Action.CUT_OVER, Action.UNDO}:
            return None
        change = self.texera.point if action is Action.CUT_OVER else self.texera.restore
        return partial(self._change_rows, change)

    def _prepare_finish(self, group: Sequence[Entry]) -> None:
        """Let an execution's rows name its user's warehouse, which a failed cut-over may have left to be done.

        Raises:
            MigrationError: A table is not cut over, or the rows cannot be changed.
        """
        if self.texera is None or self._find_key(group[0]) is None:
            return
        if early := [entry for entry in group if entry.step is not Step.CUT_OVER]:
            raise MigrationError(
                f"{early[0]}: expected an execution whose tables are all cut over, found {early[0].step.value}; "
                f"{early[0].step.explain_cut_over()}"
            )
        self._change_rows(self.texera.point, group)

    def _change_rows(self, change: Callable[[ExecutionKey, str, Ledger], None], group: Sequence[Entry]) -> None:
        """Change the rows of an execution; other tables have no rows."""
        if (key := self._find_key(group[0])) is not None:
            change(key, group[0].warehouse, self.migration.ledger)


def _is_verified(entry: Entry) -> bool:
    return entry.step in {Step.VERIFIED, Step.CUT_OVER, Step.FINISHED, Step.UNDONE}


def _add_grants(plan: Plan, grant_plan: GrantPlan) -> Plan:
    return replace(plan, grants=grant_plan.descriptions, losses=(*plan.losses, *grant_plan.losses))
