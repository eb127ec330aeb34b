"""Record the daily usage of archived warehouses in a warehouse that can be written, with a row for each day until now.

The data of an archived warehouse cannot change, so one measurement holds for all days since the archiving.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.scheduler.run_log.compute_usage import read_seconds
from lakewright_spark.scheduler.run_log.daily_usage import DAYS_KEPT, DailyUsage, add_days, list_days, list_own_days
from lakewright_spark.scheduler.usage_recording import measure_warehouse
from lakewright_spark.times import format_day


@dataclass(frozen=True)
class ArchivedWarehouses:
    """The archived warehouses of a tenant, and how to read them."""

    config: CatalogConfig
    """Configuration with an identity that may read the archived warehouses."""
    archived_at: Mapping[str, datetime]
    """Time of each archiving by the name of the warehouse."""

    def find_id(self, name: str) -> str:
        """Return the id of a warehouse, which remains when the warehouse is renamed."""
        return self.config.warehouse(name).id or name


def record_archived_usage(
    config: CatalogConfig, archives: ArchivedWarehouses, now: datetime
) -> tuple[dict[str, int], list[str]]:
    """Add rows to the first warehouse of a tenant, and return their number by archived warehouse, and the problems.

    An archive that has a row of today is not measured again.

    Args:
        config: Configuration of the tenant's jobs.
        archives: The archived warehouses.
        now: Time until which days are added.
    """
    target = config.warehouses[0].name
    added, problems = dict[str, int](), list[str]()
    for name, archived_at in archives.archived_at.items():
        try:
            archive_id = archives.find_id(name)
            with explain_errors(config, target, "ops.daily_usage"):
                target_catalog = open_catalog(config, target)
                is_recorded = _has_row(list_days(target_catalog, now), archive_id, archived_at)
            if is_recorded:
                added[name] = 0
                continue
            with explain_errors(archives.config, name, "ops.daily_usage"):
                rows = _list_rows(archives, name, open_catalog(archives.config, name), now)
            with explain_errors(config, target, "ops.daily_usage"):
                added[name] = add_days(target_catalog, rows, now)
        except LakewrightSparkError as error:
            problems.append(f"days of archived warehouse {name} are not recorded: {error}")
    return added, problems


def _has_row(rows: Collection[DailyUsage], archive_id: str, archived_at: datetime) -> bool:
    """Return whether a warehouse has a row that was measured at its archiving or later."""
    return any(row.archive_id == archive_id and row.measured_at >= archived_at.replace(microsecond=0) for row in rows)


def _list_rows(archives: ArchivedWarehouses, name: str, catalog: Catalog, now: datetime) -> list[DailyUsage]:
    """Return the rows in an archived warehouse, also of earlier archives, and a row for each day since its archiving.

    The measured seconds of pods are in the rows, as they cannot be read after the purge.
    """
    earliest, archived_at = now - timedelta(days=DAYS_KEPT), archives.archived_at[name]
    archive_id = archives.find_id(name)
    pods: dict[str, dict[str, float]] = {}
    for (pod, day), seconds in read_seconds(catalog, earliest).items():
        pods.setdefault(day, {})[pod] = seconds
    rows = list_days(catalog, earliest)
    own_rows = {row.day: row for row in list_own_days(rows, name)}
    owner = own_rows[max(own_rows)].owner if own_rows else None
    measured = replace(
        measure_warehouse(archives.config, name, catalog, now), owner=owner, measured_at=archived_at.astimezone(UTC)
    )
    days = list_missing_days(own_rows, max(archived_at, earliest), now)
    return [
        *(row for row in rows if row.archive_id is not None),
        *(
            replace(row, archive_id=archive_id, pod_seconds=json.dumps(pods.get(row.day, {})))
            for row in [*own_rows.values(), *(replace(measured, day=day) for day in days)]
        ),
    ]


def list_missing_days(recorded_days: Collection[str], archived_at: datetime, now: datetime) -> list[str]:
    """Return the UTC days from an archiving until now without the recorded days.

    >>> list_missing_days({"2026-12-01"}, datetime(2026, 11, 30, 9, tzinfo=UTC), datetime(2026, 12, 2, tzinfo=UTC))
    ['2026-11-30', '2026-12-02']
    """
    first, last = date.fromisoformat(format_day(archived_at)), date.fromisoformat(format_day(now))
    days = ((first + timedelta(days=age)).isoformat() for age in range((last - first).days + 1))
    return [day for day in days if day not in recorded_days]
