"""Measure the usage of warehouses once a run, and write it to `ops.daily_usage`. No Spark runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.dropped_tables import list_dropped_uuids
from lakewright_spark.pyiceberg_client.limit_checks import (
    ComputeHours,
    LimitUse,
    MeasuredAmounts,
    compare_amounts,
    measure_limited_namespaces,
)
from lakewright_spark.pyiceberg_client.recorded_sizes import read_last_bytes
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.pyiceberg_client.usage import measure_usage, total
from lakewright_spark.scheduler.run_log.compute_usage import PodSeconds, read_month_seconds, sum_hours
from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage, write_day
from lakewright_spark.scheduler.run_log.job_runs import sum_minutes
from lakewright_spark.scheduler.run_log.orphan_candidates import list_open_candidates
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_day

MAX_CANDIDATES = 20_000
"""Candidates of a warehouse whose sizes are asked for, each in a request. With more, their bytes are unknown."""
_CONCURRENT_REQUESTS = 8


def record_usage(
    config: CatalogConfig, catalogs: Mapping[str, Catalog], now: datetime
) -> tuple[list[DailyUsage], list[str]]:
    """Write the usage of each warehouse on the day of `now` (UTC), and return the rows and the problems.

    A problem of one warehouse does not affect other warehouses, nor the result of their maintenance.
    """
    usages: list[DailyUsage] = []
    problems: list[str] = []
    for name, catalog in catalogs.items():
        try:
            with explain_errors(config, name, "ops.daily_usage"):
                usages.append(_record_warehouse(config, name, catalog, now))
        except Exception as error:  # noqa: BLE001  # any error: the night's jobs have succeeded
            problems.append(f"the usage of warehouse {name} is not in ops.daily_usage: {_describe(error)}")
    return usages, problems


def _record_warehouse(config: CatalogConfig, name: str, catalog: Catalog, now: datetime) -> DailyUsage:
    today, yesterday = format_day(now), format_day(now - timedelta(days=1))
    minutes = sum_minutes(catalog, [today, yesterday])
    usage = replace(measure_warehouse(config, name, catalog, now), maintenance_minutes=minutes[today])
    write_day(catalog, usage, minutes[yesterday], now)
    return usage


def measure_warehouse(config: CatalogConfig, name: str, catalog: Catalog, now: datetime) -> DailyUsage:
    """Return the usage of a warehouse on the day of `now` (UTC), without minutes of maintenance. Nothing is written."""
    (warehouse,) = measure_usage(config.select_warehouses([name]), now).warehouses
    sums = total([warehouse])
    dropped_uuids = list_dropped_uuids(config, name, catalog)
    dropped_bytes = read_last_bytes(catalog, dropped_uuids or ())
    namespaces = measure_limited_namespaces(config.warehouse(name).limits, warehouse)
    return DailyUsage(
        day=format_day(now),
        warehouse=name,
        owner=warehouse.owner,
        tables=sums.tables,
        tables_unread=len(warehouse.unread),
        files=sums.files,
        bytes_live=sums.bytes_live,
        bytes_reclaimable=sums.bytes_reclaimable,
        bytes_orphan=measure_candidates(catalog, name),
        bytes_soft_deleted=None if dropped_uuids is None else sum(dropped_bytes.values()),
        dropped_unmeasured=len((dropped_uuids or set()) - dropped_bytes.keys()),
        measured_at=now,
        limited_namespaces=json.dumps(namespaces) if namespaces else None,
    )


def read_hours(
    config: CatalogConfig, catalogs: Mapping[str, Catalog], usages: Sequence[DailyUsage], now: datetime
) -> tuple[list[DailyUsage], ComputeHours, list[str]]:
    """Return the usage of the day with its hours of computing units, the hours of the month until now, and problems.

    A pod may be recorded in several warehouses, and counts in one of them: `config` has all warehouses of the tenant. A
    warehouse whose hours cannot be read has none, and the hours of the month are not complete.
    """
    seconds: dict[str, PodSeconds] = {}
    problems: list[str] = []
    for name, catalog in catalogs.items():
        try:
            with explain_errors(config, name, "ops.compute_usage"):
                seconds[name] = read_month_seconds(catalog, now)
        except Exception as error:  # noqa: BLE001  # any error: the night's jobs have succeeded
            problems.append(f"hours of computing units in warehouse {name} are not known: {_describe(error)}")
    hours = sum_hours(seconds)
    is_complete = all(warehouse.name in seconds for warehouse in config.warehouses)
    usages_with_hours = [replace(usage, cu_hours=hours.get((usage.warehouse, usage.day))) for usage in usages]
    return usages_with_hours, ComputeHours.from_days(hours, is_complete=is_complete), problems


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, LakewrightSparkError) else f"{type(error).__name__}: {error}"


def list_recorded_uses(
    config: CatalogConfig, usages: Sequence[DailyUsage], hours: ComputeHours | None
) -> list[LimitUse]:
    """Return the use of every limit of the configuration on the day of these rows; without hours, none of `compute`."""
    amounts = MeasuredAmounts(
        {
            usage.warehouse: {
                "bytes": usage.bytes_live + usage.bytes_reclaimable,
                "files": usage.files,
                "tables": usage.tables,
            }
            for usage in usages
        },
        {usage.warehouse: json.loads(usage.limited_namespaces or "{}") for usage in usages},
    )
    return compare_amounts(config, amounts, hours)


def measure_candidates(catalog: Catalog, warehouse: str) -> int | None:
    """Return the bytes of the files that are candidates of deletion; None if they are unknown.

    They are unknown if there are too many to ask for, or if the store refuses a request.
    Files that were deleted in the meantime, and files of tables that no longer exist, do not count.
    """
    candidates = list_open_candidates(catalog, MAX_CANDIDATES)
    if candidates is None:
        return None
    files: list[tuple[Table, str]] = []
    for name, paths in candidates.items():
        try:
            table = load_metadata(catalog, TableIdentifier.parse(warehouse, name).within[1:])
        except (NoSuchTableError, NoSuchNamespaceError):
            continue
        except Exception:  # noqa: BLE001  # one table that cannot be read does not cost the day's row
            return None
        files += ((table, path) for path in paths)
    with ThreadPoolExecutor(_CONCURRENT_REQUESTS, thread_name_prefix="candidates") as pool:
        sizes = list(pool.map(_read_size, files))
    return None if None in sizes else sum(size or 0 for size in sizes)


def _read_size(file: tuple[Table, str]) -> int | None:
    table, path = file
    try:
        return len(table.io.new_input(path))
    except FileNotFoundError:
        return 0
    except OSError:
        return None
