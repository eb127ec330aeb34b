"""What the tables of `ops` remember of a warehouse's tables, as decisions need it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog_policies import Job
from lakewright_spark.maintenance.candidates import CANDIDATES
from lakewright_spark.scheduler import job_runs
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.ops import found
from lakewright_spark.scheduler.records import RunState

REMEMBERED = timedelta(days=60)
"""What ran longer ago counts as never: every table is looked at again so often at least."""


def histories(catalog: Catalog, now: datetime) -> Mapping[str, History]:
    """By the table's UUID; a table of which nothing is known is not in it."""
    succeeded: defaultdict[str, dict[Job, datetime]] = defaultdict(dict)
    if (runs := found(catalog, job_runs.NAME)) is not None:
        wanted = f"{job_runs.since(now - REMEMBERED)} AND state = '{RunState.SUCCEEDED}'"
        scan = runs.scan(wanted, ("table_uuid", "job", "started_at"))
        for row in scan.to_arrow().group_by(["table_uuid", "job"]).aggregate([("started_at", "max")]).to_pylist():
            succeeded[row["table_uuid"]][cast(Job, row["job"])] = row["started_at_max"].astimezone(UTC)
    oldest: dict[str, datetime] = {}
    if (candidates := found(catalog, CANDIDATES.name)) is not None:
        rows = candidates.scan(selected_fields=("table_uuid", "first_seen")).to_arrow()
        for row in rows.group_by(["table_uuid"]).aggregate([("first_seen", "min")]).to_pylist():
            oldest[row["table_uuid"]] = row["first_seen_min"].astimezone(UTC)
    return {uuid: History(succeeded[uuid], oldest.get(uuid)) for uuid in [*succeeded, *oldest]}
