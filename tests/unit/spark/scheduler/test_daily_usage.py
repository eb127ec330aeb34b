"""Rows of `ops.daily_usage`: one per day, with the minutes of yesterday's late runs; old months are dropped."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance.table.candidates import CANDIDATES, mark_handled
from lakewright_spark.scheduler import usage_recording
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.compute_usage import PodDay, write_pod_days
from lakewright_spark.scheduler.run_log.daily_usage import (
    DAYS_KEPT,
    NAME,
    SCHEMA,
    DailyUsage,
    add_days,
    list_days,
    merge_days,
    write_day,
)
from lakewright_spark.scheduler.run_log.ops_tables import append, find_table
from lakewright_spark.scheduler.run_log.orphan_candidates import list_open_candidates
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.usage_recording import measure_candidates, read_hours
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
"""Yesterday is in another month."""
DAY = timedelta(days=1)
ORDERS = TableIdentifier("results", ("sales",), "orders")


def build_usage(at: datetime, size: int, minutes: float = 0.0) -> DailyUsage:
    return DailyUsage(day=f"{at:%F}", warehouse="results", bytes_live=size, maintenance_minutes=minutes, measured_at=at)


def test_second_run_of_a_day_replaces_the_row(local_catalog: SqlCatalog) -> None:
    for at, size in ((NOW - DAY, 1), (NOW, 2), (NOW + timedelta(hours=9), 3)):
        write_day(local_catalog, build_usage(at, size), 0.0, at)
    assert [(usage.day, usage.bytes_live) for usage in list_days(local_catalog)] == [
        ("2026-11-30", 1),
        ("2026-12-01", 3),
    ]
    assert [usage.day for usage in list_days(local_catalog, NOW)] == ["2026-12-01"]


def test_minutes_of_runs_that_ended_after_midnight(local_catalog: SqlCatalog) -> None:
    write_day(local_catalog, build_usage(NOW - 2 * DAY, 1, minutes=5.0), 0.0, NOW - 2 * DAY)
    write_day(local_catalog, build_usage(NOW - DAY, 1, minutes=7.0), 5.0, NOW - DAY)
    write_day(local_catalog, build_usage(NOW, 1, minutes=2.0), 9.5, NOW)
    assert [usage.maintenance_minutes for usage in list_days(local_catalog)] == [5.0, 9.5, 2.0]


def test_months_are_dropped_after_400_days(local_catalog: SqlCatalog) -> None:
    first = NOW - timedelta(days=DAYS_KEPT)
    for at in (first - 31 * DAY, first, NOW - DAY, NOW):
        write_day(local_catalog, build_usage(at, 1), 0.0, at)
    assert [usage.day for usage in list_days(local_catalog)] == [f"{at:%F}" for at in (first, NOW - DAY, NOW)]
    table = find_table(local_catalog, NAME)
    assert table is not None
    assert len(list(table.scan().plan_files())) <= 3, "a file for each month, whatever the number of days"


def test_minutes_count_each_run_once(local_catalog: SqlCatalog) -> None:
    queued = RunRecord(runner="r", table=ORDERS, table_uuid="u", job="compaction", queued_at=NOW, started_at=NOW)
    ended = replace(queued, state=RunState.SUCCEEDED, finished_at=NOW + timedelta(seconds=90))
    closed = replace(ended, state=RunState.FAILED, finished_at=NOW + timedelta(seconds=30))
    other = replace(ended, id="f" * 32, finished_at=NOW + timedelta(seconds=45))
    late = replace(ended, id="e" * 32, queued_at=NOW - DAY)
    job_runs.append(local_catalog, [queued], NOW)
    job_runs.append(local_catalog, [closed, late], NOW)
    job_runs.append(local_catalog, [ended, other], NOW)
    assert job_runs.sum_minutes(local_catalog, ["2026-12-01", "2026-11-30", "2026-11-29"]) == {
        "2026-12-01": 2.25,
        "2026-11-30": 1.5,
        "2026-11-29": 0.0,
    }


def test_candidates_count_their_bytes(
    local_catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted files, handled candidates and candidates of dropped tables count nothing."""
    table = local_catalog.create_table("sales.orders", schema=pa.schema([("n", pa.int64())]))
    paths = {name: tmp_path / f"{name}.parquet" for name in ("lost", "old", "dropped")}
    for size, file in enumerate(paths.values(), start=10):
        file.write_bytes(b"x" * size)
    uuid = str(table.metadata.table_uuid)

    def build_row(name: str, path: Path, at: datetime, table_uuid: str = uuid) -> dict[str, object]:
        return {"table_name": name, "table_uuid": table_uuid, "file_path": f"file://{path}", "first_seen": at}

    append(
        local_catalog,
        CANDIDATES,
        [
            build_row("results.sales.orders", paths["old"], NOW - 2 * DAY),
            mark_handled("", uuid, NOW - DAY),
            build_row("results.sales.orders", paths["lost"], NOW),
            build_row("results.sales.orders", tmp_path / "missing.parquet", NOW),
            build_row("results.sales.gone", paths["dropped"], NOW, "another"),
        ],
    )
    assert measure_candidates(local_catalog, "results") == 10
    monkeypatch.setattr(usage_recording, "MAX_CANDIDATES", 2)
    assert measure_candidates(local_catalog, "results") is None, "too many to ask for"


def test_hours_that_cannot_be_read_are_a_problem(local_catalog: SqlCatalog, tmp_path: Path) -> None:
    config = CatalogConfig(
        kind="rest",
        tenant="acme",
        uri="https://catalog.example",
        warehouses=[CatalogWarehouse(name="results"), CatalogWarehouse(name="raw")],
    )
    write_pod_days(local_catalog, [PodDay(day=f"{NOW:%F}", unit="notebook", pod="pod", seconds=5400)], NOW)
    broken_catalog = SqlCatalog("raw", uri=f"sqlite:///{tmp_path}/empty.db", init_catalog_tables="false")
    catalogs = {"results": local_catalog, "raw": broken_catalog}
    usages, hours, problems = read_hours(config, catalogs, [build_usage(NOW, 1)], NOW)
    assert [usage.cu_hours for usage in usages] == [1.5]
    assert not hours.is_complete
    assert [problem.partition(": ")[0] for problem in problems] == [
        "hours of computing units in warehouse raw are not known"
    ]


def test_too_many_candidates_do_not_become_python_texts(local_catalog: SqlCatalog) -> None:
    number = 20_000
    row = {"table_name": "results.sales.orders", "table_uuid": "u", "first_seen": NOW}
    append(local_catalog, CANDIDATES, [row | {"file_path": f"s3://bucket/{file:060}"} for file in range(number)])
    assert list_open_candidates(local_catalog, 10) is None, "loads what a first call loads"
    tracemalloc.start()
    try:
        assert list_open_candidates(local_catalog, 10) is None
        assert tracemalloc.get_traced_memory()[1] < 50 * number
    finally:
        tracemalloc.stop()


def test_rows_of_an_archive_remain_in_another_warehouse(local_catalog: SqlCatalog) -> None:
    archived = [replace(build_usage(NOW - age * DAY, 70, 3.0), warehouse="old", archive_id="old-id") for age in (9, 3)]
    write_day(local_catalog, build_usage(NOW - 4 * DAY, 1), 0.0, NOW)

    assert add_days(local_catalog, archived, NOW) == 2
    assert add_days(local_catalog, archived, NOW) == 0

    write_day(local_catalog, build_usage(NOW - 3 * DAY, 2), 4.0, NOW)
    write_day(local_catalog, build_usage(NOW - 2 * DAY, 2), 5.0, NOW)
    assert [(row.warehouse, row.day, row.maintenance_minutes) for row in list_days(local_catalog)] == [
        ("old", "2026-11-22", 3.0),
        ("results", "2026-11-27", 4.0),
        ("old", "2026-11-28", 3.0),
        ("results", "2026-11-28", 5.0),
        ("results", "2026-11-29", 0.0),
    ]


def test_table_of_an_earlier_version_gets_new_columns(local_catalog: SqlCatalog) -> None:
    local_catalog.create_namespace("ops")
    table = local_catalog.create_table(f"ops.{NAME}", Schema(*SCHEMA.fields[:17]))

    add_days(local_catalog, [replace(build_usage(NOW, 1), pod_seconds="{}")], NOW)

    assert list_days(local_catalog)[0].pod_seconds == "{}"
    assert table.refresh().schema().column_names == SCHEMA.column_names


def test_later_measurement_replaces_an_archived_day(local_catalog: SqlCatalog) -> None:
    """The warehouse was reactivated, measured, and archived again."""
    first = replace(build_usage(NOW - 9 * DAY, 70), warehouse="old", archive_id="old-id")
    add_days(local_catalog, [first, replace(first, day=f"{NOW - 8 * DAY:%F}")], NOW)
    second = replace(build_usage(NOW - 8 * DAY, 90), warehouse="old", archive_id="old-id")

    assert add_days(local_catalog, [first, second], NOW) == 1

    assert [row.bytes_live for row in list_days(local_catalog)] == [70, 90]


def test_second_run_after_a_renaming_replaces_the_row(local_catalog: SqlCatalog) -> None:
    write_day(local_catalog, build_usage(NOW - DAY, 1), 0.0, NOW - DAY)
    write_day(local_catalog, build_usage(NOW, 2, minutes=5.0), 0.0, NOW)
    later = NOW + timedelta(hours=9)

    write_day(local_catalog, replace(build_usage(later, 3, minutes=7.0), warehouse="curated"), 4.0, later)

    rows = [(row.day, row.warehouse, row.bytes_live, row.maintenance_minutes) for row in list_days(local_catalog)]
    assert rows == [("2026-11-30", "results", 1, 4.0), ("2026-12-01", "curated", 3, 7.0)]


def test_rows_of_a_renamed_warehouse_have_its_present_name() -> None:
    """An earlier version wrote two rows on the day of the renaming."""
    before, first, copy = build_usage(NOW - DAY, 1), build_usage(NOW, 2), build_usage(NOW, 70)
    second = replace(build_usage(NOW + timedelta(hours=9), 3), warehouse="curated")
    copy = replace(copy, warehouse="old", archive_id="old-id")

    merged = merge_days({"curated": [before, second, first, copy]}, {"results-id": "curated"})

    assert [(row.day, row.warehouse, row.bytes_live) for row in merged] == [
        ("2026-11-30", "curated", 1),
        ("2026-12-01", "curated", 3),
        ("2026-12-01", "old", 70),
    ]


def test_copies_of_a_renamed_archive_have_its_present_name() -> None:
    """The archive was reactivated with another name. A day on which it was measured counts once."""
    copies = [replace(build_usage(NOW - age * DAY, 70), warehouse="old", archive_id="old-id") for age in (2, 1)]
    live_row = replace(build_usage(NOW - DAY, 80), warehouse="new")

    merged = merge_days({"results": copies, "new": [live_row]}, {"old-id": "new"})

    assert {(row.day, row.warehouse, row.bytes_live) for row in merged} == {
        ("2026-11-29", "new", 70),
        ("2026-11-30", "new", 80),
    }
    later_copy = replace(build_usage(NOW, 90), warehouse="new", archive_id="old-id")
    merged = merge_days({"results": [*copies, later_copy]}, {})
    assert {row.warehouse for row in merged} == {"new"}, "it was archived again"
