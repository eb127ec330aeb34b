"""`ops.job_runs`: append-only rows of all runs of jobs. The most advanced row of a run has its state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

from lakewright_spark.catalog import COMMIT_RETRIES
from lakewright_spark.iceberg_values import METADATA_LIMITS
from lakewright_spark.policies.builtin import JOB_RUNS
from lakewright_spark.policies.model import JobName
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing, find_table, read_parts
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_day

NAME = JOB_RUNS
_TEXT, _TIME = StringType(), TimestamptzType()
SCHEMA = Schema(
    NestedField(1, "day", _TEXT, doc="UTC day on which the run was queued, yyyy-MM-dd; the partition"),
    NestedField(2, "run_id", _TEXT, doc="32 hexadecimal digits; several rows of one run have the same"),
    NestedField(3, "runner", _TEXT, doc="HOST/PROCESS/digits of the runner"),
    NestedField(4, "table_name", _TEXT, doc="WAREHOUSE.NAMESPACE.TABLE, a part with a dot in it in backquotes"),
    NestedField(5, "table_uuid", _TEXT, doc="differs from that of a later table with the same name"),
    NestedField(6, "job", _TEXT, doc="retention, .., statistics; plan: the table could not be planned; restore"),
    NestedField(7, "state", _TEXT, doc="QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED, SKIPPED"),
    NestedField(8, "reason", _TEXT, doc="why it was due, or why it did not succeed"),
    NestedField(9, "snapshot_id", LongType(), doc="the table's current snapshot when the run was planned"),
    NestedField(10, "queued_at", _TIME, doc="when the run was planned"),
    NestedField(11, "started_at", _TIME),
    NestedField(12, "finished_at", _TIME),
    NestedField(13, "seconds", DoubleType(), doc="from started_at to finished_at"),
    NestedField(14, "metrics", _TEXT, doc="metrics of the job, as a JSON object"),
    NestedField(15, "recorded_at", _TIME, doc="when this row was written"),
)
_UNFINISHED = "('{}')".format("', '".join(state for state in RunState if not state.has_ended))
"""For a filter of PyIceberg."""
_PARTITIONS = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
PROPERTIES = {
    **COMMIT_RETRIES,
    **METADATA_LIMITS,
    "comment": "Runs of maintenance jobs, append-only; the most advanced row of a run has its state",
}


def append(catalog: Catalog, records: Sequence[RunRecord], now: datetime) -> None:
    """Append a row for each run in one commit. Errors of PyIceberg are raised."""
    table = create_if_missing(catalog, NAME, SCHEMA, PROPERTIES, _PARTITIONS)
    table.append(pa.Table.from_pylist([_row(record, now) for record in records], table.schema().as_arrow()))


def build_day_filter(earliest: datetime) -> str:
    """Return PyIceberg's filter for runs that were queued on the day of this instant or later."""
    return f"day >= '{format_day(earliest)}'"


def list_runs(
    catalog: Catalog, warehouse: str, earliest: datetime | None = None, *, row_filter: str = ""
) -> list[RunRecord]:
    """Return the latest state of each run, first queued first.

    Args:
        catalog: Catalog of the warehouse.
        warehouse: Name of the warehouse.
        earliest: Runs that were queued before the day of this instant are left out.
        row_filter: Filter of PyIceberg on columns that all rows of a run share, such as `job`.
    """
    table = find_table(catalog, NAME)
    if table is None:
        return []
    filters = [condition for condition in (build_day_filter(earliest) if earliest else "", row_filter) if condition]
    return _latest_states(warehouse, table.scan(" AND ".join(filters) or AlwaysTrue()).to_arrow().to_pylist())


def list_open_runs(table: Table, warehouse: str, day: str) -> list[RunRecord]:
    """Return the runs of a day that have not ended. Only one column of ended runs is read."""
    unfinished, ended = (f"day = '{day}' AND state {within} {_UNFINISHED}" for within in ("IN", "NOT IN"))
    run_ids = _ids(table, unfinished)
    if run_ids:
        run_ids -= _ids(table, ended)
    if not run_ids:
        return []
    rows = read_parts(table, unfinished, tuple(field.name for field in SCHEMA.fields))
    return _latest_states(warehouse, [row for part in rows for row in part.to_pylist() if row["run_id"] in run_ids])


def sum_minutes(catalog: Catalog, days: Sequence[str]) -> dict[str, float]:
    """Return the minutes of the runs that were queued on these UTC days, by day."""
    seconds: dict[str, dict[str, float]] = {day: {} for day in days}
    if table := find_table(catalog, NAME):
        names = "', '".join(days)
        row_filter = f"day IN ('{names}') AND seconds IS NOT NULL"
        for part in read_parts(table, row_filter, ("day", "run_id", "seconds")):
            # A run that was closed as dead and ended later has two rows with a duration.
            longest = part.group_by(["day", "run_id"]).aggregate([("seconds", "max")])
            for row in longest.to_pylist():
                runs = seconds[row["day"]]
                runs[row["run_id"]] = max(row["seconds_max"], runs.get(row["run_id"], 0.0))
    return {day: math.fsum(runs.values()) / 60 for day, runs in seconds.items()}


def _ids(table: Table, row_filter: str) -> set[str]:
    return {
        run_id for part in read_parts(table, row_filter, ("run_id",)) for run_id in part.column("run_id").to_pylist()
    }


def _latest_states(warehouse: str, rows: Iterable[dict[str, Any]]) -> list[RunRecord]:
    furthest = {row["run_id"]: row for row in sorted(rows, key=_progress)}
    return sorted(_records(warehouse, furthest.values()), key=lambda run: (run.queued_at, run.table.within))


def _progress(row: dict[str, Any]) -> tuple[bool, bool, datetime]:
    """Order rows of a run by state, since the clocks of their writers may differ."""
    state = RunState(row["state"])
    return state.has_ended, state is not RunState.QUEUED, row["recorded_at"]


def _row(run: RunRecord, now: datetime) -> dict[str, Any]:
    return {
        "day": format_day(run.queued_at),
        "run_id": run.id,
        "runner": run.runner,
        "table_name": str(run.table),
        "table_uuid": run.table_uuid,
        "job": run.job,
        "state": run.state.value,
        "reason": run.reason,
        "snapshot_id": run.snapshot,
        "queued_at": run.queued_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "seconds": run.seconds,
        "metrics": json.dumps(dict(run.metrics)),
        "recorded_at": now,
    }


def _records(warehouse: str, rows: Iterable[dict[str, Any]]) -> Iterator[RunRecord]:
    for row in rows:
        whole = TableIdentifier.parse(warehouse, row["table_name"])
        yield RunRecord(
            id=row["run_id"],
            runner=row["runner"],
            # The warehouse may have been renamed since the row was written.
            table=TableIdentifier(warehouse, whole.namespace[1:], whole.name),
            table_uuid=row["table_uuid"],
            job=cast(JobName, row["job"]),
            state=RunState(row["state"]),
            reason=row["reason"],
            snapshot=row["snapshot_id"],
            queued_at=row["queued_at"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            metrics=json.loads(row["metrics"]),
        )


HISTORY_WINDOW = timedelta(days=60)
"""Older runs do not count, so every job runs again after this time."""
