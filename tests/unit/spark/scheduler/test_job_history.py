"""`maintain` reads earlier runs in bounded parts, few columns, and each day once."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pyarrow as pa
import pytest
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import StagedFilesPolicy, TablePolicies
from lakewright_spark.scheduler import recovery
from lakewright_spark.scheduler.plan import JobDecision, TablePlan, WarehousePlan, find_expired_candidates
from lakewright_spark.scheduler.recovery import close_abandoned_runs
from lakewright_spark.scheduler.run_log import histories, job_runs, ops_tables
from lakewright_spark.scheduler.run_log.histories import load_histories
from lakewright_spark.scheduler.run_log.ops_tables import append, build_partitions, build_schema
from lakewright_spark.scheduler.run_log.orphan_candidates import (
    drop_handled_days,
    forget_candidates,
    read_oldest_candidates,
)
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import ArrowScan

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS, TABLES = 12, 20


def run(number: int, ago: timedelta, state: RunState = RunState.SUCCEEDED, runner: str = "old") -> RunRecord:
    at = NOW - ago
    table = TableIdentifier("local", ("sales",), f"t{number}")
    times = {"started_at": at, "finished_at": at} if state.has_ended else {}
    return RunRecord(
        runner=runner, table=table, table_uuid=f"u{number}", job="statistics", state=state, queued_at=at, **times
    )


@pytest.fixture
def catalog(local_catalog: SqlCatalog) -> SqlCatalog:
    """Return a catalog with twelve days of runs of twenty tables, one commit a day."""
    for day in range(DAYS, 0, -1):
        job_runs.append(local_catalog, [run(number, day * DAY) for number in range(TABLES)], NOW - day * DAY)
    return local_catalog


@dataclasses.dataclass
class Read:
    """Tables that Arrow returned, by scan."""

    rows: list[int]
    columns: set[str]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    reads = Read([], set())
    to_table = ArrowScan.to_table

    def record_and_read(self: ArrowScan, tasks: Any) -> pa.Table:
        rows = to_table(self, tasks)
        reads.rows.append(rows.num_rows)
        reads.columns |= set(rows.column_names)
        return rows

    monkeypatch.setattr(ArrowScan, "to_table", record_and_read)
    return reads


def test_history_is_read_in_bounded_parts(catalog: SqlCatalog, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: sixty days at once took 4 GB with 10,000 tables."""
    monkeypatch.setattr(
        histories, "read_parts", lambda *arguments: ops_tables.read_parts(*arguments, rows_per_part=100)
    )
    histories_by_table = load_histories(catalog, NOW)
    assert {uuid: one.succeeded["statistics"] for uuid, one in histories_by_table.items()} == {
        f"u{number}": NOW - DAY for number in range(TABLES)
    }
    assert sum(read.rows) == DAYS * TABLES
    assert max(read.rows) <= 100
    assert read.columns == {"table_uuid", "job", "started_at", "seconds"}


def test_recovery_reads_only_ids_of_open_runs(catalog: SqlCatalog, read: Read) -> None:
    """Regression: each start built a dictionary of every run of sixty days."""
    job_runs.append(catalog, [run(1, DAY, RunState.RUNNING), run(2, DAY, RunState.QUEUED)], NOW - DAY)
    mine = run(3, timedelta(), RunState.QUEUED, "mine")
    job_runs.append(catalog, [mine], NOW)
    read.rows.clear()
    closed = close_abandoned_runs(catalog, "local", "mine", NOW)
    assert {(run.table.name, run.state) for run in closed} == {("t1", RunState.FAILED), ("t2", RunState.CANCELLED)}
    assert sum(read.rows) < 3 * TABLES


def test_recovery_reads_no_day_twice(catalog: SqlCatalog, read: Read) -> None:
    close_abandoned_runs(catalog, "local", "mine", NOW)
    job_runs.append(catalog, [run(1, 2 * DAY, RunState.RUNNING)], NOW)
    job_runs.append(catalog, [run(2, -DAY, RunState.RUNNING)], NOW)
    snapshots = len(catalog.load_table("ops.job_runs").metadata.snapshots)
    read.rows.clear()
    (closed,) = close_abandoned_runs(catalog, "local", "next", NOW + DAY)
    assert closed.table.name == "t2", "the other day was closed before, for what lived then"
    assert sum(read.rows) < TABLES
    assert len(catalog.load_table("ops.job_runs").metadata.snapshots) == snapshots + 1


def test_recovery_reads_days_of_live_runs_again(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a run stayed open forever if its runner survived one recovery."""
    job_runs.append(catalog, [run(1, 3 * DAY, RunState.RUNNING, "long")], NOW - 3 * DAY)
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "active_runners", lambda *_: frozenset({"long"}))
        assert close_abandoned_runs(catalog, "local", "mine", NOW) == []
    (closed,) = close_abandoned_runs(catalog, "local", "next", NOW + DAY)
    assert (closed.runner, closed.state) == ("long", RunState.FAILED)
    assert close_abandoned_runs(catalog, "local", "next", NOW + DAY) == []
    assert catalog.load_table("ops.job_runs").properties[recovery.CLOSED_UNTIL] == "2026-11-23"


def test_ended_run_is_not_closed_again(catalog: SqlCatalog) -> None:
    began = run(1, timedelta(hours=2), RunState.RUNNING)
    job_runs.append(catalog, [began], NOW)
    job_runs.append(catalog, [dataclasses.replace(began, state=RunState.SUCCEEDED, finished_at=NOW)], NOW)
    assert close_abandoned_runs(catalog, "local", "mine", NOW) == []


def plan_table(uuid: str, days: int = 3, verdict: Literal["due", "held"] = "held") -> TablePlan:
    """Return the plan of a table that keeps staged files for this number of days."""
    table_facts = TableFacts(table=TableIdentifier("local", ("sales",), uuid), uuid=uuid, properties={}, touched_at=NOW)
    policies = TablePolicies(staged_files=StagedFilesPolicy(older_than_days=days))
    return TablePlan(table_facts, policies, (JobDecision("staged-files", verdict, ""),))


def add_candidates(catalog: SqlCatalog, *ages: tuple[str, int]) -> None:
    """Add candidates of tables with these ages in days."""
    rows = [
        {"table_name": "t", "table_uuid": uuid, "file_path": f"{uuid}-{days}", "first_seen": NOW - days * DAY}
        for uuid, days in ages
    ]
    append(catalog, CANDIDATES, rows)


def forget(catalog: SqlCatalog, plan: WarehousePlan, *, is_complete: bool = True) -> dict[str, int]:
    """Forget old candidates; return the age in days of the oldest remaining candidate of each table."""
    histories = load_histories(catalog, NOW)
    forget_candidates(catalog, find_expired_candidates(plan, histories, NOW, is_complete=is_complete))
    return {uuid: (NOW - at) // DAY for uuid, at in read_oldest_candidates(catalog).items()}


def test_old_candidates_are_forgotten(local_catalog: SqlCatalog) -> None:
    """Candidates of dropped tables, which no run deletes, and of a table whose job is held."""
    add_candidates(local_catalog, ("gone", 91), ("gone", 100), ("there", 91), ("there", 3))

    assert forget(local_catalog, WarehousePlan("local", (plan_table("there"),), {})) == {"there": 3}
    assert forget(local_catalog, WarehousePlan("local", (plan_table("there"),), {})) == {"there": 3}


@pytest.mark.parametrize("days", [90, 120, 400])
def test_candidates_are_kept_as_long_as_the_policy_needs(days: int, local_catalog: SqlCatalog) -> None:
    """Regression: candidates were forgotten after 90 days, before the policy allowed their deletion."""
    add_candidates(local_catalog, ("u", days + 29), ("u", days + 31))

    assert forget(local_catalog, WarehousePlan("local", (plan_table("u", days),), {})) == {"u": days + 29}


def test_candidates_of_a_due_table_are_kept(local_catalog: SqlCatalog) -> None:
    add_candidates(local_catalog, ("u", 200))

    assert forget(local_catalog, WarehousePlan("local", (plan_table("u", verdict="due"),), {})) == {"u": 200}


def test_candidates_of_unplanned_tables_are_kept(local_catalog: SqlCatalog) -> None:
    add_candidates(local_catalog, ("u", 200))
    unread = {TableIdentifier("local", ("sales",), "t"): "it cannot be read"}

    assert forget(local_catalog, WarehousePlan("local", (), {}), is_complete=False) == {"u": 200}
    assert forget(local_catalog, WarehousePlan("local", (), unread)) == {"u": 200}
    assert forget(local_catalog, WarehousePlan("local", (), {})) == {}


def list_candidate_files(catalog: SqlCatalog) -> list[int]:
    """Return the number of rows of each file of `ops.orphan_candidates`."""
    files = catalog.load_table("ops.orphan_candidates").scan().plan_files()
    return sorted(task.file.record_count for task in files)


def test_days_of_handled_candidates_are_dropped(local_catalog: SqlCatalog) -> None:
    """A run writes one file for all its tables. A mark is dropped together with the candidates that it ends."""
    add_candidates(local_catalog, *((f"u{number}", 40) for number in range(50)))
    add_candidates(local_catalog, ("u1", 20), ("u2", 20))
    assert list_candidate_files(local_catalog) == [2, 50]

    forget_candidates(local_catalog, {f"u{number}": NOW - 30 * DAY for number in range(50)})
    oldest = read_oldest_candidates(local_catalog)
    assert {uuid: (NOW - at) // DAY for uuid, at in oldest.items()} == {"u1": 20, "u2": 20}
    drop_handled_days(local_catalog, oldest.values(), NOW)
    assert list_candidate_files(local_catalog) == [2]
    assert read_oldest_candidates(local_catalog) == oldest

    drop_handled_days(local_catalog, [], NOW - 21 * DAY)
    assert list_candidate_files(local_catalog) == [2], "days that other runs may write to are kept"


def test_candidates_of_an_earlier_release_are_read(local_catalog: SqlCatalog) -> None:
    """Regression: a run wrote a file for each table, since tables were partitions."""
    schema = build_schema(CANDIDATES)
    by_table = dataclasses.replace(CANDIDATES, partition="table_uuid")
    local_catalog.create_namespace_if_not_exists("ops")
    name = f"ops.{CANDIDATES.name}"
    local_catalog.create_table(name, schema, partition_spec=build_partitions(by_table, schema))
    ages = {"u1": 50, "u2": 40}
    local_catalog.load_table(name).append(
        pa.Table.from_pylist(
            [
                {"table_name": "t", "table_uuid": uuid, "file_path": uuid, "first_seen": NOW - days * DAY}
                for uuid, days in ages.items()
            ],
            schema.as_arrow(),
        )
    )
    add_candidates(local_catalog, ("u1", 3), ("u2", 3), ("u3", 3))
    assert list_candidate_files(local_catalog) == [1, 1, 3]
    assert [str(field.transform) for field in local_catalog.load_table(name).spec().fields] == ["day"]

    forget_candidates(local_catalog, {"u1": NOW - 45 * DAY})
    drop_handled_days(local_catalog, [NOW - 40 * DAY], NOW)
    remaining = {uuid: (NOW - at) // DAY for uuid, at in read_oldest_candidates(local_catalog).items()}
    assert remaining == {"u1": 3, "u2": 40, "u3": 3}
