"""Unreferenced files of a table, and `ops.orphan_candidates`, which records when a run first found each."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lakewright_spark import handed_over
from lakewright_spark.maintenance.table.backups import FOLDER, list_backed_up_files
from lakewright_spark.maintenance.table.iceberg import IcebergTable, SqlSession, instant_sql, iterate
from lakewright_spark.maintenance.table.location_listing import list_location
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ops_tables import ensure_ops_table, keep_rows
from lakewright_spark.maintenance.table.row_buffer import OpsTable
from lakewright_spark.maintenance.table.shared_location import check_location
from lakewright_spark.policies.builtin import ORPHAN_CANDIDATES
from lakewright_spark.policies.history_rules import resolve_longest_run
from lakewright_spark.policies.model import OrphanFilesPolicy, TablePolicies
from lakewright_spark.session.own_classes import call_own_class

CANDIDATES = OpsTable(
    ORPHAN_CANDIDATES,
    "table_name string, table_uuid string, file_path string, first_seen timestamp",
    # A run writes one file for all its tables. Rows are only added, so runs do not conflict; old days are dropped.
    "days(first_seen)",
)
"""A row without `file_path` says that all candidates of the table up to `first_seen` are handled."""
MAX_ROWS_IN_MEMORY = 1000
"""New candidates of a table that pass through this process. Spark writes larger numbers itself."""
MAX_LISTED = 2000
"""Files under a table's location that are checked without Spark."""
MAX_OWNERS = 1000
"""Objects with the name of an owner that are checked. The job stops if any of them names another table."""
_COMPARISON = "lakewright.spark.UnreferencedFiles"
_EPOCH = datetime.fromtimestamp(0, UTC)
REPLICA_DAYS = 3
"""Minimum age in days for replicas, whose files exist longer before their commit. OpenHouse's value."""


def age_limit(policy: TablePolicies, now: datetime) -> datetime:
    """Return the instant from which on changed files are too young to be orphans.

    A write may take as long as a reader: its first files are that old when it commits.
    """
    days = (policy.orphan_files or OrphanFilesPolicy()).older_than_days
    age = timedelta(days=max(days, REPLICA_DAYS) if policy.replica else days)
    return now - max(age, resolve_longest_run(policy.history))


@contextmanager
def find_unreferenced_files(
    opened: IcebergTable, older_than: datetime, listing: str | None = None
) -> Generator[DataFrame]:
    """Yield `file_path` of each old file under the table's location that nothing refers to.

    The executors list the location, unless the user has a table with a listing. Metadata files are left out, since a
    commit whose response was lost may have written them, and so are backups and the files that they name. Spark caches
    the files until the end of the context.

    Raises:
        SharedLocationError: Another table has files under the location.
    """
    path = f.col("file_path")
    is_owner = path.rlike(handed_over.PATTERN)
    files = list_location(opened, listing).where(~path.endswith(".metadata.json"))
    # Objects that name an owner count at any age.
    modified = f.when(is_owner, f.lit(_EPOCH)).otherwise(f.col("last_modified"))
    with compare_with_metadata(opened, files.select(path, modified.alias("last_modified")), older_than) as unreferenced:
        # Objects of other tables come first, and the first of them is refused.
        is_own = f.lower(path).endswith(f"/{opened.uuid.lower()}.json")
        owners = unreferenced.where(is_owner).distinct().orderBy(is_own, path).limit(MAX_OWNERS)
        check_location(opened, (row.file_path for row in owners.collect()))
        files = unreferenced.where(~is_owner)
        files = files if listing is None else files.distinct()  # a user's listing may name a file twice
        files = files.where(~path.startswith(f"{opened.location}/{FOLDER}/"))
        if backup_files := list_backed_up_files(opened):
            rows = cast(SqlSession, opened.spark).createDataFrame(
                [(file,) for file in sorted(backup_files)], "backup_file string"
            )
            files = files.join(rows, _unify_scheme(path) == _unify_scheme(f.col("backup_file")), "left_anti")
        yield files


def _unify_scheme(path: Column) -> Column:
    """Return addresses with the same spelling of the scheme of S3, as Iceberg compares addresses."""
    return f.regexp_replace(path, "^s3[an]://", "s3://")


@contextmanager
def compare_with_metadata(opened: IcebergTable, files: DataFrame, older_than: datetime) -> Generator[DataFrame]:
    """Yield `file_path` of the old files that nothing in the table's metadata refers to. Nothing is deleted.

    Iceberg compares them. Its procedure would return all addresses in the memory of the driver. Spark caches the files
    until the end of the context.

    Args:
        opened: The table.
        files: Columns `file_path` and `last_modified`.
        older_than: Instant (UTC) from which on changed files are left out.
    """
    millis = int(older_than.timestamp() * 1000)
    java = call_own_class(opened.spark, _COMPARISON, "find", opened.java, cast(Any, files)._jdf, millis)
    unreferenced = DataFrame(java, opened.spark)
    try:
        yield unreferenced.withColumnRenamed("value", "file_path")
    finally:
        unreferenced.unpersist()


@contextmanager
def compute_once(frame: DataFrame) -> Generator[DataFrame]:
    """Yield the rows of a frame, which the executors keep until the end of the context.

    Spark computes a cached frame again, and keeps it, when rows are added to a table that the frame reads. The rows
    cannot be computed again, so two executors keep each of them.
    """
    master = frame.sparkSession.sparkContext.master or ""
    level = StorageLevel.MEMORY_AND_DISK if master.startswith("local") else StorageLevel.MEMORY_AND_DISK_2
    rows = frame.localCheckpoint(storageLevel=level)
    try:
        yield rows
    finally:
        cast(Any, rows)._jdf.queryExecution().analyzed().rdd().unpersist(False)  # noqa: FBT003


def record_candidates(opened: IcebergTable, files: DataFrame, first_seen: datetime) -> int:
    """Add the files of column `file_path` to the candidates of the table, and return their number."""
    number = files.count()
    if number and number <= MAX_ROWS_IN_MEMORY:
        row = {"table_name": str(opened.table), "table_uuid": opened.uuid, "first_seen": first_seen}
        keep_rows(CANDIDATES, opened, [row | file.asDict() for file in files.select("file_path").collect()])
    elif number:
        files.select(
            f.lit(str(opened.table)).alias("table_name"),
            f.lit(opened.uuid).alias("table_uuid"),
            "file_path",
            f.expr(instant_sql(first_seen)).alias("first_seen"),
        ).coalesce(1).writeTo(ensure_ops_table(CANDIDATES, opened.spark, opened.table.warehouse)).append()
    return number


def has_no_unreferenced_files(opened: IcebergTable, older_than: datetime) -> bool:
    """Return whether it is certain, without Spark, that `find_unreferenced_files` is empty. False means unknown.

    Raises:
        SharedLocationError: Another table has files under the location.
    """
    metadata = Metadata.read(opened)
    if not metadata.is_small:
        return False
    referenced, limit = metadata.list_referenced_files(), older_than.timestamp() * 1000
    owner_objects: list[str] = []
    for number, file in enumerate(iterate(opened.java.io().listPrefix(f"{opened.location}/"))):
        if number == MAX_LISTED:
            return False
        path = file.location()
        if handed_over.is_key(path):
            owner_objects.append(path)
            continue
        if path not in referenced and not path.endswith(".metadata.json") and file.createdAtMillis() < limit:
            return False
    check_location(opened, owner_objects)
    return True


def read_candidates(opened: IcebergTable) -> DataFrame:
    """Return `file_path` and `first_seen` of this table's candidates, by its UUID, without handled candidates."""
    rows = opened.spark.table(ensure_ops_table(CANDIDATES, opened.spark, opened.table.warehouse))
    rows = rows.where(f.col("table_uuid") == opened.uuid)
    handled = rows.where(f.col("file_path").isNull()).agg(f.max("first_seen").alias("handled_until"))
    candidates = rows.where(f.col("file_path").isNotNull()).crossJoin(f.broadcast(handled))
    is_open = f.col("handled_until").isNull() | (f.col("first_seen") > f.col("handled_until"))
    return candidates.where(is_open).select("file_path", "first_seen")


def mark_handled(table_name: str, table_uuid: str, until: datetime) -> Mapping[str, Any]:
    """Return the row that ends the candidates of a table which were found up to an instant (UTC)."""
    return {"table_name": table_name, "table_uuid": table_uuid, "file_path": None, "first_seen": until}
