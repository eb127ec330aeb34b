"""`retention`: delete the rows that are older than the policy keeps, whole files at a time, never a part of one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from lakewright_spark.catalog_policies import RetentionPolicy, TablePolicies
from lakewright_spark.catalog_retention import cutoff, retention_mistakes
from lakewright_spark.date_pattern import DEFAULT_PATTERN, formatted
from lakewright_spark.errors import JobFailedError, PolicyRefusedError
from lakewright_spark.maintenance.backups import manifest_path
from lakewright_spark.maintenance.iceberg import IcebergTable, instant
from lakewright_spark.maintenance.job import Metrics
from lakewright_spark.table_identifier import TableIdentifier, literal, quoted


@dataclass(frozen=True, kw_only=True)
class RetentionMetrics(Metrics):
    """What was deleted: data files with their rows and bytes."""

    before: str = ""
    """Rows whose column is less than this."""
    files: int = 0
    rows: int = 0
    bytes: int = 0
    manifest: str | None = None
    """Where the files that stay as a backup are named."""


def run(
    spark: SparkSession, table: TableIdentifier, policy: TablePolicies, *, dry_run: bool, now: datetime
) -> RetentionMetrics:
    """Delete what is past the policy. The floor: the unit that has begun and at least one whole unit before it stay.

    PolicyRefusedError if the policy does not suit the table; JobFailedError if a file holds rows of both sides, since
    that would have to be written anew: nothing is deleted then.
    """
    retention = policy.retention
    if retention is None:
        return RetentionMetrics(state="SKIPPED", reason="no retention policy", dry_run=dry_run)
    opened = IcebergTable.open(spark, table)
    columns = opened.columns()
    if mistakes := retention_mistakes(retention, columns, opened.partitions()):
        raise PolicyRefusedError(f"table {table}: {'; '.join(mistakes)}")
    limit = _limit(retention, columns[retention.column], now)
    planned = _plan(opened, retention.column, limit)
    if mixed := planned["mixed"]:
        raise JobFailedError(
            f"table {table}: {mixed} files hold rows before and after {limit}; retention deletes whole files alone: "
            f"rewrite these by the table's partitions first"
        )
    found = RetentionMetrics(
        before=limit, files=planned["files"], rows=planned["row_count"], bytes=planned["bytes"], dry_run=dry_run
    )
    if dry_run or found.files == 0:
        return found
    manifest = _back_up(opened, retention, limit, now) if retention.backup else None
    # Without IS NOT NULL, Iceberg takes a partition of null for one that is less than anything, and drops it.
    column = quoted(retention.column)
    spark.sql(f"DELETE FROM {table.sql} WHERE {column} IS NOT NULL AND {column} < {limit}")  # noqa: S608  # quoted
    return RetentionMetrics(**{**vars(found), "manifest": manifest})


def _limit(retention: RetentionPolicy, kind: str, now: datetime) -> str:
    before = cutoff(retention, now)
    if retention.pattern is not None:
        return literal(formatted(before, retention.pattern or DEFAULT_PATTERN))
    if kind == "date":
        return f"DATE '{before:%Y-%m-%d}'"
    # Without a zone, times are taken for UTC, as partitions take them.
    return instant(before) if kind.startswith("timestamptz") else f"TIMESTAMP_NTZ '{before:%Y-%m-%d %H:%M:%S}'"


def _old(column: str, limit: str) -> tuple[str, str]:
    """Conditions on a data file: that all of its rows are before the limit, and that some are and others are not."""
    bounds = f"readable_metrics.{quoted(column)}"
    nulls, rows = f"coalesce({bounds}.null_value_count, 0)", "record_count"
    whole = f"({bounds}.upper_bound < {limit} AND {nulls} = 0)"
    none = f"({bounds}.lower_bound >= {limit} OR {nulls} = {rows})"
    return f"coalesce({whole}, false)", f"NOT coalesce({whole}, false) AND NOT coalesce({none}, false)"


def _plan(opened: IcebergTable, column: str, limit: str) -> dict[str, int]:
    whole, mixed = _old(column, limit)
    counted = opened.spark.sql(
        f"SELECT count_if({whole}) AS files, count_if({mixed}) AS mixed, "  # noqa: S608  # quoted parts alone
        f"coalesce(sum(record_count) FILTER (WHERE {whole}), 0) AS row_count, "
        f"coalesce(sum(file_size_in_bytes) FILTER (WHERE {whole}), 0) AS bytes FROM {opened.metadata('data_files')}"
    )
    return counted.collect()[0].asDict()


def _back_up(opened: IcebergTable, retention: RetentionPolicy, limit: str, now: datetime) -> str:
    whole, _ = _old(retention.column, limit)
    rows = opened.spark.sql(f"SELECT file_path FROM {opened.metadata('data_files')} WHERE {whole}").collect()  # noqa: S608
    files = sorted(row.file_path for row in rows)
    path = manifest_path(opened.location, now)
    opened.write(path, json.dumps({"file_count": len(files), "files": files}))
    return path
