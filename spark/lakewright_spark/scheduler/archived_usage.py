"""Copy the daily usage of archived warehouses to a warehouse that can be written, with a row for each day until now.

The data of an archived warehouse cannot change, so each day has the bytes of the last measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.scheduler.run_log.compute_usage import read_seconds, sum_hours
from lakewright_spark.scheduler.run_log.daily_usage import (
    DAYS_KEPT,
    DailyUsage,
    add_days,
    list_days,
    repeat_last_day,
)
from lakewright_spark.times import format_day


@dataclass(frozen=True)
class ArchivedWarehouses:
    """The archived warehouses of a tenant, and how to read them."""

    config: CatalogConfig
    """Configuration with an identity that may read the archived warehouses."""
    archived_at: Mapping[str, datetime]
    """Time of each archiving by the name of the warehouse."""


def record_archived_usage(
    config: CatalogConfig, archives: ArchivedWarehouses, now: datetime
) -> tuple[dict[str, int], list[str]]:
    """Add rows to the first warehouse of a tenant, and return their number by archived warehouse, and the problems.

    Args:
        config: Configuration of the tenant's jobs.
        archives: The archived warehouses.
        now: Time until which days are added.
    """
    target = config.warehouses[0].name
    added, problems = dict[str, int](), list[str]()
    for name, archived_at in archives.archived_at.items():
        try:
            with explain_errors(archives.config, name, "ops.daily_usage"):
                rows = _list_rows(open_catalog(archives.config, name), name, archived_at, now)
            with explain_errors(config, target, "ops.daily_usage"):
                added[name] = add_days(open_catalog(config, target), rows, now) if rows else 0
        except LakewrightSparkError as error:
            problems.append(f"days of archived warehouse {name} are not recorded: {error}")
    return added, problems


def _list_rows(catalog: Catalog, name: str, archived_at: datetime, now: datetime) -> list[DailyUsage]:
    """Return the rows of an archived warehouse, also rows of earlier archives in it, with hours of computing units."""
    earliest = now - timedelta(days=DAYS_KEPT)
    listed_rows = list_days(catalog, earliest)
    hours = sum_hours({name: read_seconds(catalog, earliest)})
    rows = [
        replace(row, cu_hours=hours.get((name, row.day))) if row.warehouse == name and row.cu_hours is None else row
        for row in listed_rows
    ]
    measured = [row for row in rows if row.warehouse == name]
    return [*rows, *repeat_last_day(measured, format_day(archived_at), format_day(now))]
