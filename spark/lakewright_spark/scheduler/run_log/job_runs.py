"""`ops.job_runs`: every run of a job, as rows that are only added. The newest row of a run says how it stands."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
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
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.policies.builtin import JOB_RUNS
from lakewright_spark.policies.model import Job
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.run_log.ops_tables import found, made, parts
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier

NAME = JOB_RUNS
_TEXT, _TIME = StringType(), TimestamptzType()
SCHEMA = Schema(
    NestedField(1, "day", _TEXT, doc="UTC day on which the run was queued, yyyy-MM-dd; the partition"),
    NestedField(2, "run_id", _TEXT, doc="32 hexadecimal digits; several rows of one run have the same"),
    NestedField(3, "runner", _TEXT, doc="HOST/PROCESS/digits of who ran it"),
    NestedField(4, "table_name", _TEXT, doc="WAREHOUSE.NAMESPACE.TABLE, a part with a dot in it in backquotes"),
    NestedField(5, "table_uuid", _TEXT, doc="tells a table from one that is made later under its name"),
    NestedField(6, "job", _TEXT, doc="retention, .., statistics; plan: could not be decided; restore"),
    NestedField(7, "state", _TEXT, doc="QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED, SKIPPED"),
    NestedField(8, "reason", _TEXT, doc="why it was due; of a run that did not succeed, why not"),
    NestedField(9, "snapshot_id", LongType(), doc="the table's current snapshot when it was decided"),
    NestedField(10, "queued_at", _TIME, doc="when it was decided"),
    NestedField(11, "started_at", _TIME),
    NestedField(12, "finished_at", _TIME),
    NestedField(13, "seconds", DoubleType(), doc="from started_at to finished_at"),
    NestedField(14, "metrics", _TEXT, doc="the job's own numbers, as a JSON object"),
    NestedField(15, "recorded_at", _TIME, doc="when this row was written"),
)
_UNFINISHED = "('{}')".format("', '".join(state for state in RunState if not state.ended))
"""As a filter of PyIceberg's."""
_PARTITIONS = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
PROPERTIES = {
    **COMMIT_RETRIES,
    "write.metadata.delete-after-commit.enabled": "true",
    "comment": "Runs of maintenance jobs; rows are only added, the one whose state is furthest says how a run stands",
}


def append(catalog: Catalog, records: Sequence[RunRecord], now: datetime) -> None:
    """Add a row for each in one commit. Raises what PyIceberg raises."""
    table = made(catalog, NAME, SCHEMA, PROPERTIES, _PARTITIONS)
    table.append(pa.Table.from_pylist([_row(one, now) for one in records], table.schema().as_arrow()))


def since(earliest: datetime) -> str:
    """What PyIceberg takes to leave out days before this instant."""
    return f"day >= '{earliest.astimezone(UTC):%Y-%m-%d}'"


def runs(catalog: Catalog, warehouse: str, earliest: datetime | None = None, *, wanted: str = "") -> list[RunRecord]:
    """Return how each run stands that was queued on this day or later, the first queued first.

    `wanted` is a filter as PyIceberg reads it, on columns that all rows of a run have in common, such as `job`.
    """
    table = found(catalog, NAME)
    if table is None:
        return []
    filters = [one for one in (since(earliest) if earliest else "", wanted) if one]
    return _standing(warehouse, table.scan(" AND ".join(filters) or AlwaysTrue()).to_arrow().to_pylist())


def open_runs(table: Table, warehouse: str, day: str) -> list[RunRecord]:
    """Return the runs of a day that have not ended. Of the others, one column is read."""
    unfinished, ended = (f"day = '{day}' AND state {within} {_UNFINISHED}" for within in ("IN", "NOT IN"))
    left = _ids(table, unfinished)
    if left:
        left -= _ids(table, ended)
    if not left:
        return []
    every = parts(table, unfinished, tuple(field.name for field in SCHEMA.fields))
    return _standing(warehouse, [row for part in every for row in part.to_pylist() if row["run_id"] in left])


def _ids(table: Table, wanted: str) -> set[str]:
    return {one for part in parts(table, wanted, ("run_id",)) for one in part.column("run_id").to_pylist()}


def _standing(warehouse: str, rows: Iterable[dict[str, Any]]) -> list[RunRecord]:
    furthest = {row["run_id"]: row for row in sorted(rows, key=_progress)}
    return sorted(_records(warehouse, furthest.values()), key=lambda one: (one.queued_at, one.table.within))


def _progress(row: dict[str, Any]) -> tuple[bool, bool, datetime]:
    """No run goes back in its states, but the clocks of those who write them down may differ."""
    state = RunState(row["state"])
    return state.ended, state is not RunState.QUEUED, row["recorded_at"]


def _row(one: RunRecord, now: datetime) -> dict[str, Any]:
    return {
        "day": f"{one.queued_at.astimezone(UTC):%Y-%m-%d}",
        "run_id": one.id,
        "runner": one.runner,
        "table_name": str(one.table),
        "table_uuid": one.table_uuid,
        "job": one.job,
        "state": one.state.value,
        "reason": one.reason,
        "snapshot_id": one.snapshot,
        "queued_at": one.queued_at,
        "started_at": one.started_at,
        "finished_at": one.finished_at,
        "seconds": one.seconds,
        "metrics": json.dumps(dict(one.metrics)),
        "recorded_at": now,
    }


def _records(warehouse: str, rows: Iterable[dict[str, Any]]) -> Iterator[RunRecord]:
    for row in rows:
        whole = TableIdentifier.parse(warehouse, row["table_name"])
        yield RunRecord(
            id=row["run_id"],
            runner=row["runner"],
            # The warehouse's own name, whatever it was called when the row was written.
            table=TableIdentifier(warehouse, whole.namespace[1:], whole.name),
            table_uuid=row["table_uuid"],
            job=cast(Job, row["job"]),
            state=RunState(row["state"]),
            reason=row["reason"],
            snapshot=row["snapshot_id"],
            queued_at=row["queued_at"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            metrics=json.loads(row["metrics"]),
        )


REMEMBERED = timedelta(days=60)
"""What ran longer ago counts as never: every table is looked at again so often at least."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def histories(catalog: Catalog, now: datetime) -> Mapping[str, History]:
    """By the table's UUID; a table of which nothing is known is not in it."""
    succeeded: defaultdict[str, dict[Job, datetime]] = defaultdict(dict)
    if (runs := found(catalog, NAME)) is not None:
        wanted = f"{since(now - REMEMBERED)} AND state = '{RunState.SUCCEEDED}'"
        for part in parts(runs, wanted, ("table_uuid", "job", "started_at")):
            newest = part.group_by(["table_uuid", "job"]).aggregate([("started_at", "max")])
            for uuid, job, at in _rows(newest, "table_uuid", "job", "started_at_max"):
                known = succeeded[uuid]
                known[cast(Job, job)] = max(at.astimezone(UTC), known.get(cast(Job, job), _NEVER))
    oldest: dict[str, datetime] = {}
    if (candidates := found(catalog, CANDIDATES.name)) is not None:
        for part in parts(candidates, AlwaysTrue(), ("table_uuid", "first_seen")):
            first = part.group_by(["table_uuid"]).aggregate([("first_seen", "min")])
            for uuid, at in _rows(first, "table_uuid", "first_seen_min"):
                oldest[uuid] = min(at.astimezone(UTC), oldest.get(uuid, now))
    return {uuid: History(succeeded[uuid], oldest.get(uuid)) for uuid in [*succeeded, *oldest]}


def _rows(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
