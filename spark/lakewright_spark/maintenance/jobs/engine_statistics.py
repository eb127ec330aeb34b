"""Job `engine-statistics`: compute statistics that query engines read, by Iceberg's own procedures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.jobs.job import (
    WEEKLY,
    DueDecision,
    History,
    JobMetrics,
    MaintenanceJob,
    due_after,
    due_after_change,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from lakewright_spark.policies.model import EngineStatisticsPolicy, TablePolicies
from lakewright_spark.table_identifier import literal


@dataclass(frozen=True, kw_only=True)
class EngineStatisticsMetrics(JobMetrics):
    """Whether each kind of statistics is up to date with the current snapshot."""

    partitions: bool = False
    """Rows, files and bytes by partition. A table without partitions has none."""
    columns: bool = False
    """Number of distinct values by column."""


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> EngineStatisticsMetrics:
    """Compute the statistics of the current snapshot. Partitions are computed from the files changed since.

    Raises:
        PolicyRefusedError: A column of the policy does not exist, or has parts, such as a list.
    """
    del now  # the snapshot decides
    settings = policy.engine_statistics
    if settings is None or opened.java.currentSnapshot() is None:
        return EngineStatisticsMetrics(dry_run=dry_run, reason="no policy" if settings is None else "no rows")
    columns = _find_columns(opened, settings)
    has_partitions = settings.partitions and bool(opened.partitions())
    if dry_run:
        return EngineStatisticsMetrics(partitions=has_partitions, columns=bool(columns), dry_run=True)
    if has_partitions:
        opened.call("compute_partition_stats").collect()
    if columns:
        _compute_column_statistics(opened, columns)
    current = opened.java.currentSnapshot().snapshotId()
    return EngineStatisticsMetrics(
        partitions=any(file.snapshotId() == current for file in iterate(opened.java.partitionStatisticsFiles())),
        columns=any(file.snapshotId() == current for file in iterate(opened.java.statisticsFiles())),
    )


def _compute_column_statistics(opened: IcebergTable, columns: Mapping[str, int]) -> None:
    """Compute the statistics of the current snapshot, unless it has statistics of exactly these columns.

    Lakekeeper ignores other statistics of the same snapshot, so those are removed before, and set again on an error.

    Args:
        opened: The table.
        columns: IDs of the columns by name.
    """
    current = opened.java.currentSnapshot().snapshotId()
    former = next((file for file in iterate(opened.java.statisticsFiles()) if file.snapshotId() == current), None)
    if former is not None:
        blobs = iterate(former.blobMetadata())
        if {number for blob in blobs for number in iterate(blob.fields())} == {*columns.values()}:
            return
        opened.java.updateStatistics().removeStatistics(current).commit()
    try:
        opened.call("compute_table_stats", columns=f"array({', '.join(map(literal, columns))})").collect()
    except BaseException:
        if former is not None:
            opened.java.updateStatistics().setStatistics(former).commit()
        raise


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether rows changed since the last run, which is long enough ago."""
    if policies.engine_statistics is None:
        return DueDecision(is_due=False, reason="no policy engine_statistics")
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    changed = due_after_change("engine-statistics", facts, history)
    return due_after(WEEKLY, "engine-statistics", policies, history, now) if changed.is_due else changed


JOB = MaintenanceJob(name="engine-statistics", run=run, is_due=is_due, every=WEEKLY)


def _find_columns(opened: IcebergTable, settings: EngineStatisticsPolicy) -> dict[str, int]:
    """Return the ID of each column to count distinct values of, by name."""
    if settings.columns == "none":
        return {}
    fields = {field.name(): field for field in iterate(opened.java.schema().columns())}
    numbers = {name: int(field.fieldId()) for name, field in fields.items() if field.type().isPrimitiveType()}
    if settings.columns == "all":
        return numbers
    if unknown := [name for name in settings.columns if name not in fields]:
        raise PolicyRefusedError(
            f"table {opened.table}: engine_statistics: expected columns of the table, {', '.join(fields)}; there is "
            f"no {', '.join(unknown)}"
        )
    if nested := [f"{name} {fields[name].type().toString()}" for name in settings.columns if name not in numbers]:
        raise PolicyRefusedError(
            f"table {opened.table}: engine_statistics: expected columns without parts, {', '.join(numbers)}; found "
            f"{', '.join(nested)}. Remove them from `columns`"
        )
    return {name: numbers[name] for name in settings.columns}
