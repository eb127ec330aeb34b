"""`ops.orphan_candidates`: files of a table that no snapshot refers to, and when a run first found each."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakewright_spark.maintenance.table.backups import FOLDER, backed_up
from lakewright_spark.maintenance.table.iceberg import IcebergTable, each, instant
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.ops_tables import OpsTable
from lakewright_spark.policies.builtin import ORPHAN_CANDIDATES
from lakewright_spark.policies.model import OrphanFilesPolicy, TablePolicies

CANDIDATES = OpsTable(
    ORPHAN_CANDIDATES,
    "table_name string, table_uuid string, file_path string, first_seen timestamp",
    # Parallel runs change partitions of their own, and deleting is a matter of metadata.
    "table_uuid",
)
MOST_LISTED = 2000
"""Files under the location of a table for a look without Spark."""
REPLICA_DAYS = 3
"""A replica's files come before the commit that refers to them by longer than others': OpenHouse's floor."""


def age_limit(policy: TablePolicies, now: datetime) -> datetime:
    """Files changed at this instant or later are no orphans yet."""
    days = (policy.orphan_files or OrphanFilesPolicy()).older_than_days
    return now - timedelta(days=max(days, REPLICA_DAYS) if policy.replica else days)


def unreferenced(opened: IcebergTable, older_than: datetime) -> DataFrame:
    """`file_path` of each file under the table's location that nothing refers to, listed by the table's own FileIO.

    Metadata files are not for jobs to delete, since a commit that lost its answer may have made one; backups neither.
    """
    found = opened.call(
        "remove_orphan_files", older_than=instant(older_than), dry_run="true", prefix_listing="true"
    ).withColumnRenamed("orphan_file_location", "file_path")
    path = f.col("file_path")
    found = found.where(~path.endswith(".metadata.json") & ~path.startswith(f"{opened.location}/{FOLDER}/"))
    if kept := backed_up(opened):
        rows = opened.spark.createDataFrame([(file,) for file in sorted(kept)], "file_path string")
        found = found.join(rows, "file_path", "left_anti")
    return found


def none_unreferenced(opened: IcebergTable, older_than: datetime) -> bool:
    """Whether a look without Spark is sure that `unreferenced` would find nothing; False says nothing."""
    metadata = Metadata.of(opened)
    if not metadata.small:
        return False
    referred, limit = metadata.referred(), older_than.timestamp() * 1000
    for number, file in enumerate(each(opened.java.io().listPrefix(f"{opened.location}/"))):
        if number == MOST_LISTED:
            return False
        path = file.location()
        if path not in referred and not path.endswith(".metadata.json") and file.createdAtMillis() < limit:
            return False
    return True


def recorded(opened: IcebergTable) -> DataFrame:
    """The candidates of this table, not those of one that had its name before."""
    mine = opened.spark.table(CANDIDATES.make(opened.spark, opened.table.warehouse))
    return mine.where(f.col("table_uuid") == opened.uuid).select("file_path", "first_seen")
