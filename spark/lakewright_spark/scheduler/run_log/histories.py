"""Histories of tables from `ops.job_runs` and the orphan candidates: what the rules for due jobs ask for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue

from lakewright_spark.maintenance.jobs.job import History
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.policies.model import JobName
from lakewright_spark.scheduler.run_log.job_runs import HISTORY_WINDOW, NAME, build_day_filter
from lakewright_spark.scheduler.run_log.ops_tables import find_table, read_parts
from lakewright_spark.scheduler.run_log.records import RunState

_NEVER = datetime.min.replace(tzinfo=UTC)


def load_histories(catalog: Catalog, now: datetime) -> Mapping[str, History]:
    """Return the earlier runs by table UUID. Tables without runs and candidates are left out."""
    succeeded: defaultdict[str, dict[JobName, datetime]] = defaultdict(dict)
    if (runs := find_table(catalog, NAME)) is not None:
        row_filter = f"{build_day_filter(now - HISTORY_WINDOW)} AND state = '{RunState.SUCCEEDED}'"
        for part in read_parts(runs, row_filter, ("table_uuid", "job", "started_at")):
            newest = part.group_by(["table_uuid", "job"]).aggregate([("started_at", "max")])
            for uuid, job, at in _rows(newest, "table_uuid", "job", "started_at_max"):
                times = succeeded[uuid]
                times[cast(JobName, job)] = max(at.astimezone(UTC), times.get(cast(JobName, job), _NEVER))
    oldest: dict[str, datetime] = {}
    if (candidates := find_table(catalog, CANDIDATES.name)) is not None:
        for part in read_parts(candidates, AlwaysTrue(), ("table_uuid", "first_seen")):
            first = part.group_by(["table_uuid"]).aggregate([("first_seen", "min")])
            for uuid, at in _rows(first, "table_uuid", "first_seen_min"):
                oldest[uuid] = min(at.astimezone(UTC), oldest.get(uuid, now))
    return {uuid: History(succeeded[uuid], oldest.get(uuid)) for uuid in [*succeeded, *oldest]}


def _rows(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
