"""A compaction that is cancelled keeps its finished groups, and the next run continues."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from pyspark import InheritableThread

from tests.spark.maintenance.conftest import Maintained
from tests.spark.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]

PARTITIONS = 120
"""Iceberg compacts each partition by itself."""
TAG = "cancelled-compaction"


def test_cancelled_compaction_repeats_few_groups(create_table: Callable[..., Maintained]) -> None:
    """A second run does not rewrite what the first run finished, and under 5 % of the files are written twice."""
    table = create_table("cancelled", "(n bigint, part int) USING iceberg PARTITIONED BY (part)")
    table.set_policies(compaction={"min_input_files": 2})
    for _ in range(2):
        table.do(f"INSERT INTO THIS SELECT id, id % {PARTITIONS} FROM range({PARTITIONS * 3})")
    rows = sorted(table.column("SELECT n FROM THIS"))
    before = {*table.objects()}

    def compact() -> None:
        table.spark.sparkContext.addJobTag(TAG)
        table.job("compaction")

    thread = InheritableThread(target=compact, session=table.spark)
    thread.start()
    wait_until(lambda: count_commits(table) >= 2 + 4)

    def is_cancelled() -> bool:
        table.spark.sparkContext.cancelJobsWithTag(TAG)  # repeated, as by the supervisor: further groups begin
        return not thread.is_alive()

    wait_until(is_cancelled)
    finished = PARTITIONS - count_files_to_rewrite(table) // 2
    assert PARTITIONS // 4 < finished < PARTITIONS, "the run was cancelled in the middle"
    second = table.job("compaction")
    assert (second.rewritten, second.failed) == (2 * (PARTITIONS - finished), 0)
    assert count_files_to_rewrite(table) == 0

    written = {path for path in {*table.objects()} - before if "/data/" in path}
    repeated = len(written) - PARTITIONS
    assert 0 <= repeated < 0.05 * PARTITIONS
    assert sorted(table.column("SELECT n FROM THIS")) == rows


def count_commits(table: Maintained) -> int:
    return sum(1 for _ in iterate(IcebergTable.open(table.spark, table.table).java.snapshots()))


def count_files_to_rewrite(table: Maintained) -> int:
    return table.job("compaction", dry_run=True).rewritten
