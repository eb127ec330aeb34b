"""What the tables of `ops` remember of a warehouse's tables, as decisions need it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue

from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.policies.model import Job
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.ops_scan import parts
from lakewright_spark.scheduler.run_log.ops_tables import found
from lakewright_spark.scheduler.run_log.records import RunState

REMEMBERED = timedelta(days=60)
"""What ran longer ago counts as never: every table is looked at again so often at least."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def histories(catalog: Catalog, now: datetime) -> Mapping[str, History]:
    """By the table's UUID; a table of which nothing is known is not in it."""
    succeeded: defaultdict[str, dict[Job, datetime]] = defaultdict(dict)
    if (runs := found(catalog, job_runs.NAME)) is not None:
        wanted = f"{job_runs.since(now - REMEMBERED)} AND state = '{RunState.SUCCEEDED}'"
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
