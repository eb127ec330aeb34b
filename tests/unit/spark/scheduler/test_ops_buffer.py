"""Rows of jobs in `ops`: one commit for many tables, a bounded buffer, and no success without rows."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.iceberg_values import METADATA_LIMITS, find_missing_limits
from lakewright_spark.maintenance.jobs.statistics import COMMITS, TABLES
from lakewright_spark.maintenance.table.candidates import CANDIDATES, mark_handled
from lakewright_spark.maintenance.table.ops_tables import OpsTable
from lakewright_spark.maintenance.table.partition_sizes import PARTITIONS
from lakewright_spark.scheduler.run_log import job_runs, ops_buffer
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.ops_tables import append, build_partitions, build_schema
from lakewright_spark.scheduler.run_log.orphan_candidates import read_oldest_candidates
from lakewright_spark.scheduler.run_log.recorder import Recorder
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException, ForbiddenError
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse

NOW = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)


def row(number: int, at: datetime = NOW) -> dict[str, Any]:
    """Return a row with the columns of every table of `ops`."""
    names = {name for table in (TABLES, PARTITIONS, COMMITS, CANDIDATES) for name in column_names(table.columns)}
    values = dict.fromkeys(names, number)
    texts = dict.fromkeys(("table_name", "table_uuid", "partition", "operation", "summary", "file_path"), f"t{number}")
    times = dict.fromkeys(("collected_at", "committed_at", "first_seen", "oldest_snapshot_at", "last_updated_at"), at)
    return values | texts | times


def column_names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(",")]


@pytest.fixture
def buffer(local_config: CatalogConfig, local_catalog: SqlCatalog) -> OpsBuffer:
    return OpsBuffer(local_config, {"local": local_catalog}, max_rows=1000)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse appends to all tables of `ops` except `job_runs`."""

    def refuse(*_: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(ops_buffer, "append", refuse)


def commits(catalog: SqlCatalog, name: str) -> int:
    return len(catalog.load_table(f"ops.{name}").metadata.snapshots)


def test_rows_of_many_tables_are_one_commit(buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    """Regression: statistics took three commits for each table, 30,000 a night for 10,000 tables."""
    for number in range(200):
        for table in (TABLES, PARTITIONS, COMMITS, CANDIDATES):
            buffer.add("local", table, [row(number)])
    assert buffer.flush("local") == []
    for table in (TABLES, PARTITIONS, COMMITS, CANDIDATES):
        assert commits(local_catalog, table.name) == 1
        written_rows = local_catalog.load_table(f"ops.{table.name}").scan().to_arrow()
        assert set(written_rows.column("table_uuid").to_pylist()) == {f"t{number}" for number in range(200)}
    assert len(buffer) == 0
    assert buffer.flush("local") == []
    assert commits(local_catalog, TABLES.name) == 1, "nothing to write is no commit"


def test_old_metadata_files_are_deleted(buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    """Also of tables of earlier releases, unless a user has decided otherwise."""
    buffer.add("local", TABLES, [row(0)])
    buffer.flush("local")
    table = local_catalog.load_table("ops.table_statistics")
    assert table.properties.items() >= METADATA_LIMITS.items()
    with table.transaction() as change:
        change.remove_properties(*METADATA_LIMITS)
        change.set_properties({"write.metadata.previous-versions-max": "2"})
    for number in range(4):
        buffer.add("local", TABLES, [row(number)])
        buffer.flush("local")
    table = local_catalog.load_table("ops.table_statistics")
    assert table.properties.items() >= {**METADATA_LIMITS, "write.metadata.previous-versions-max": "2"}.items()
    folder = Path(table.metadata_location.removeprefix("file://")).parent
    assert len(table.metadata.metadata_log) == 2
    assert len(list(folder.glob("*.metadata.json"))) < 6


@pytest.mark.parametrize(
    "error", [ForbiddenError("read-only"), CommitStateUnknownException("no response"), ConnectionError("no route")]
)
def test_rows_need_no_limits(local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A commit of the limits that fails, or takes effect without a response, does not stop the append after it."""
    append(local_catalog, TABLES, [row(1)])
    with local_catalog.load_table("ops.table_statistics").transaction() as change:
        change.remove_properties(*METADATA_LIMITS)
    commit_table, commits = local_catalog.commit_table, list[int]()

    def fail_first(*arguments: Any) -> CommitTableResponse:
        commits.append(len(arguments))
        response = None if isinstance(error, ForbiddenError) and len(commits) == 1 else commit_table(*arguments)
        if response is None or len(commits) == 1:
            raise error
        return response

    monkeypatch.setattr(local_catalog, "commit_table", fail_first)
    append(local_catalog, TABLES, [row(2)])
    assert len(local_catalog.load_table("ops.table_statistics").scan().to_arrow()) == 2


def test_kept_metadata_files_are_not_limited() -> None:
    """Iceberg would forget files beyond the number, and leave them in the storage."""
    assert find_missing_limits({"write.metadata.delete-after-commit.enabled": "false"}) == {}


def test_rows_are_partitioned_by_day(buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    buffer.add("local", TABLES, [row(1), row(2), row(3, NOW + timedelta(minutes=2))])
    buffer.flush("local")
    table = local_catalog.load_table("ops.table_statistics")
    counts = {task.file.partition[0]: task.file.record_count for task in table.scan().plan_files()}
    day = (NOW - datetime(1970, 1, 1, tzinfo=UTC)).days
    assert counts == {day: 2, day + 1: 1}
    later = table.scan("collected_at >= '2026-11-23T00:00:00+00:00'")
    assert later.to_arrow().column("table_uuid").to_pylist() == ["t3"]
    assert len(list(later.plan_files())) == 1


def test_bounded_number_of_rows_waits(buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    most = 0
    for number in range(35):
        buffer.add("local", TABLES, [row(number)] * 100)
        most = max(most, len(buffer))
    assert most == 1000
    buffer.flush("local")
    assert commits(local_catalog, TABLES.name) == 4
    assert local_catalog.load_table("ops.table_statistics").scan().count() == 3500


def test_candidates_of_many_tables_are_handled_in_one_commit(buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    """Later candidates and those of other tables are kept."""
    for number in range(20):
        buffer.add("local", CANDIDATES, [row(number), row(number, NOW + timedelta(days=1))])
    buffer.flush("local")
    for number in range(19):
        buffer.add("local", CANDIDATES, [mark_handled("t", f"t{number}", NOW)])
    before = commits(local_catalog, CANDIDATES.name)
    assert buffer.flush("local") == []
    assert read_oldest_candidates(local_catalog) == {
        **{f"t{number}": NOW + timedelta(days=1) for number in range(19)},
        "t19": NOW,
    }
    assert commits(local_catalog, CANDIDATES.name) == before + 1


@pytest.mark.usefixtures("broken")
def test_rows_that_cannot_be_written_are_kept_and_bounded(buffer: OpsBuffer) -> None:
    buffer.add("local", TABLES, [row(1)] * 1000)
    (failure,) = buffer.flush("local")
    assert failure.reason.startswith("1000 rows are not in ops.table_statistics: ")
    assert failure.unwritten == TABLES.name
    with pytest.raises(JobFailedError, match="1000 rows are not in"):
        buffer.add("local", TABLES, [row(2)])
    assert len(buffer) == 1000


RUN = RunRecord(
    runner="r",
    table=TableIdentifier("local", ("sales",), "orders"),
    table_uuid="u",
    job="statistics",
    queued_at=NOW,
    started_at=NOW,
)
SUCCEEDED = dataclasses.replace(RUN, state=RunState.SUCCEEDED, finished_at=NOW)
ORPHANS = dataclasses.replace(SUCCEEDED, id="orphans", job="orphan-files")


def list_states(catalog: SqlCatalog) -> list[tuple[RunState, str]]:
    return [(run.state, run.reason) for run in job_runs.list_runs(catalog, "local")]


@pytest.fixture
def recorder(local_config: CatalogConfig, local_catalog: SqlCatalog, buffer: OpsBuffer) -> Recorder:
    return Recorder(local_config, {"local": local_catalog}, lambda: NOW, buffer=buffer)


def test_run_succeeds_with_its_rows(recorder: Recorder, buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    buffer.add("local", TABLES, [row(1)])
    recorder(SUCCEEDED)
    assert recorder.close() == []
    assert list_states(local_catalog) == [(RunState.SUCCEEDED, "")]
    assert commits(local_catalog, TABLES.name) == 1


@pytest.mark.usefixtures("broken")
def test_run_whose_rows_are_lost_fails(recorder: Recorder, buffer: OpsBuffer, local_catalog: SqlCatalog) -> None:
    """The run stays open while its rows wait, as in a process that dies; then it is due again."""
    buffer.add("local", TABLES, [row(1)])
    recorder(dataclasses.replace(RUN, state=RunState.RUNNING))
    recorder._flush()
    recorder(SUCCEEDED)
    snapshots = commits(local_catalog, "job_runs")
    assert recorder._flush() == [failure.reason for failure in buffer.flush("local")]
    assert commits(local_catalog, "job_runs") == snapshots
    assert list_states(local_catalog) == [(RunState.RUNNING, "")]
    (why,) = recorder.close()
    assert list_states(local_catalog) == [(RunState.FAILED, why)]


def test_run_waits_for_rows_of_another_thread(
    recorder: Recorder, buffer: OpsBuffer, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the run succeeded before the other thread had written its rows."""
    writing, fail = threading.Event(), threading.Event()

    def block_and_fail(*_: object) -> None:
        writing.set()
        assert fail.wait(60)
        raise ConnectionError("no route")

    buffer.add("local", CANDIDATES, [row(1)] * 1000)
    recorder(ORPHANS)
    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as threads:
        patched.setattr(ops_buffer, "append", block_and_fail)
        added = threads.submit(buffer.add, "local", CANDIDATES, [row(2)])
        assert writing.wait(60)
        flushed = threads.submit(recorder._flush)
        # A flush that does not wait records the run before the append ends.
        try:
            assert not wait([flushed], timeout=1).done
        finally:
            fail.set()
        assert len(flushed.result()) == 1
        with pytest.raises(JobFailedError, match="no route"):
            added.result()
    assert list_states(local_catalog) == []
    assert recorder.close() == []
    assert list_states(local_catalog) == [(RunState.SUCCEEDED, "")]
    assert local_catalog.load_table(f"ops.{CANDIDATES.name}").scan().count() == 1000


def test_failed_rows_fail_only_their_own_jobs(
    recorder: Recorder, buffer: OpsBuffer, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: any failure failed the runs of both jobs."""
    append = ops_buffer.append

    def refuse_statistics(catalog: Any, table: OpsTable, rows: Any) -> None:
        if table is PARTITIONS:
            raise ConnectionError("no route")
        append(catalog, table, rows)

    monkeypatch.setattr(ops_buffer, "append", refuse_statistics)
    for table in (TABLES, PARTITIONS, CANDIDATES):
        buffer.add("local", table, [row(1)])
    recorder(SUCCEEDED)
    recorder(ORPHANS)
    (why,) = recorder.close()
    assert set(list_states(local_catalog)) == {(RunState.FAILED, why), (RunState.SUCCEEDED, "")}
    assert {run.job for run in job_runs.list_runs(local_catalog, "local") if run.state is RunState.FAILED} == {
        "statistics"
    }


def test_table_with_columns_in_another_order(local_catalog: SqlCatalog, buffer: OpsBuffer) -> None:
    """Tables of earlier releases may have the same columns in another order."""
    fields = list(build_schema(TABLES).fields)
    schema = Schema(*reversed(fields))
    local_catalog.create_namespace("ops")
    local_catalog.create_table("ops.table_statistics", schema, partition_spec=build_partitions(TABLES, schema))
    buffer.add("local", TABLES, [row(7)])
    assert buffer.flush("local") == []
    (written_row,) = local_catalog.load_table("ops.table_statistics").scan().to_arrow().to_pylist()
    assert (written_row["table_uuid"], written_row["row_count"], written_row["collected_at"]) == ("t7", 7, NOW)
