"""Delete files of each kind, deletion vectors, and column types of format version 3 that PyIceberg does not know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.policies.model import JOBS
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.pyiceberg_client.usage import measure_usage
from lakewright_spark.scheduler.plan import plan_requested_job

from tests.spark.maintenance.conftest import Maintained
from tests.spark.maintenance.delete_files import delete_by_equality

pytestmark = pytest.mark.spark

CreateTable = Callable[..., Maintained]
V3 = "USING iceberg TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read')"


@pytest.mark.long
@pytest.mark.usefixtures("variant_columns")
def test_every_job_runs_on_a_table_with_a_variant_column(create_table: CreateTable, tenant: CatalogConfig) -> None:
    table = create_table("variants", f"(n int, v variant, s struct<v: variant>) {V3}")
    row = """ (1, parse_json('{"a": 1}'), named_struct('v', parse_json('2')))"""
    for _ in range(2):
        table.do(f"INSERT INTO THIS VALUES {row}")
    for job in JOBS:
        plan = plan_requested_job(tenant, table.table, job, registry=None, now=datetime.now(UTC))
        assert (plan.decisions[0].verdict, plan.facts.data_files) == ("due", 2), job
    table.set_policies(history={"versions": 2}, compaction={"min_input_files": 2})
    for job in JOBS:
        assert table.job(job).failure is None, job
    assert table.column("SELECT to_json(v) FROM THIS") == ['{"a":1}'] * 2
    sizes = {usage.table: usage.size for usage in measure_usage(tenant, datetime.now(UTC)).warehouses[0].tables}
    assert sizes[table.table].files == 1


@pytest.mark.usefixtures("variant_columns")
def test_policy_of_a_table_with_a_variant_column(create_table: CreateTable, tenant: CatalogConfig) -> None:
    table = create_table("variants", f"(n int, v variant) {V3}")
    policies = PolicyTables(tenant, "results")
    with pytest.raises(PolicyRefusedError, match=r"ALTER TABLE .*variants.* SET TBLPROPERTIES"):
        policies.set(table.table, "history", '{"versions": 2}')
    table.do("""ALTER TABLE THIS SET TBLPROPERTIES ('lakewright.policy.history'='{"versions": 2}')""")
    assert policies.show(table.table).policies.history
    with pytest.raises(PolicyRefusedError, match="UNSET TBLPROPERTIES"):
        policies.unset(table.table, "history")
    live_table = open_catalog(tenant, "results")
    assert live_table.table_exists(table.table.within), "the catalog is usable"


@pytest.mark.long
def test_table_of_orc_files_is_maintained(create_table: CreateTable) -> None:
    table = create_table("orc", "(n int, k int) USING iceberg TBLPROPERTIES ('write.format.default'='orc')")
    for number in range(3):
        table.do(f"INSERT INTO THIS VALUES ({number}, 1)")
    table.set_policies(compaction={"min_input_files": 2})
    assert (table.job("compaction").rewritten, table.job("snapshot-expiration").failure) == (3, None)
    assert table.do("SELECT * FROM THIS.snapshots").count() == 1, "the other snapshots are older than five days"
    assert table.column("SELECT file_format FROM THIS.files") == ["ORC"]
    assert sorted(table.column("SELECT n FROM THIS")) == [0, 1, 2]


def list_delete_files(table: Maintained) -> list[tuple[int, str, int]]:
    """Return content, format and number of deletes of each delete file."""
    rows = table.do("SELECT content, file_format, record_count FROM THIS.delete_files").collect()
    return sorted((row.content, row.file_format, row.record_count) for row in rows)


def create_with_deletes(create_table: CreateTable, version: int, rows: int = 10) -> Maintained:
    properties = f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read')"
    table = create_table("deletes", f"(n int, k int) USING iceberg PARTITIONED BY (k) {properties}")
    table.do(f"INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, 1 FROM range({rows})")
    return table


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.long), 3])
def test_file_with_many_deleted_rows_is_rewritten(create_table: CreateTable, version: int) -> None:
    """Its size is right, and it is alone in its partition: only the deletes are a reason."""
    table = create_with_deletes(create_table, version)
    table.set_policies(compaction={"target_file_size": "1MiB", "min_input_files": 2})
    table.do("DELETE FROM THIS WHERE n < 2")
    done = table.job("compaction")
    assert (done.rewritten, list_delete_files(table)[0][2]) == (0, 2), "a fifth of the rows"
    table.do("DELETE FROM THIS WHERE n = 2")
    assert table.job("compaction", dry_run=True).rewritten == 1
    done = table.job("compaction")
    assert (done.rewritten, done.added, done.removed_delete_files) == (1, 1, 1)
    assert list_delete_files(table) == []
    assert sorted(table.column("SELECT n FROM THIS")) == list(range(3, 10))


def test_equality_deletes_are_compacted(create_table: CreateTable) -> None:
    table = create_with_deletes(create_table, 2)
    table.set_policies(compaction={"target_file_size": "1MiB", "equality_delete_threshold": 2})
    delete_by_equality(table, 1, 1)
    assert (table.job("compaction").rewritten, list_delete_files(table)) == (0, [(2, "PARQUET", 1)])
    delete_by_equality(table, 2, 1)
    done = table.job("compaction")
    assert done.rewritten == 1
    assert list_delete_files(table) == [], "no data file is left that they apply to"
    assert sorted(table.column("SELECT n FROM THIS")) == [0, *range(3, 10)]


def test_each_equality_delete_of_a_small_table_is_removed(create_table: CreateTable) -> None:
    """A data file to which it does not apply is as old, so Iceberg would keep the delete file with it."""
    table = create_with_deletes(create_table, 2)
    table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, 1 FROM range(20, 30)")
    delete_by_equality(table, 1, 1)
    assert table.job("compaction", dry_run=True).rewritten == 2
    done = table.job("compaction")
    assert (done.rewritten, done.removed_delete_files, list_delete_files(table)) == (2, 1, [])
    assert sorted(table.column("SELECT n FROM THIS")) == [0, *range(2, 10), *range(20, 30)]


def append_random(table: Maintained, rows: int) -> None:
    """Append a file of about 8 bytes for each row, in partition 1."""
    table.do(f"INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, 1, rand() FROM range({rows})")


def list_sizes(table: Maintained) -> list[float]:
    """Return the sizes of the data files in MiB, smallest first."""
    return sorted(size / 2**20 for size in table.column("SELECT file_size_in_bytes FROM THIS.data_files"))


@pytest.mark.long
def test_equality_deletes_of_a_large_table(create_table: CreateTable) -> None:
    """One delete file is no reason to rewrite a table of two files of the target size."""
    table = create_table("upserts", "(n int, k int, x double) USING iceberg PARTITIONED BY (k)")
    table.set_policies(compaction={"target_file_size": "1MiB", "delete_file_threshold": 2})
    for _ in range(2):
        append_random(table, 120_000)
    sizes = list_sizes(table)
    assert sizes[0] > 0.75
    assert sizes[-1] < 1.8 < sum(sizes)
    delete_by_equality(table, 1, 1)
    assert table.job("compaction", dry_run=True).rewritten == 0
    delete_by_equality(table, 2, 1)
    done = table.job("compaction")
    assert (done.rewritten, list_delete_files(table)) == (2, [])
    assert table.do("SELECT n FROM THIS WHERE n < 4").count() == 4


def test_few_files_of_medium_size_are_compacted(create_table: CreateTable) -> None:
    """Four files of a third of the target size: fewer than `min_input_files`, but more than a full file."""
    table = create_table("medium", "(n bigint, k int, x double) USING iceberg PARTITIONED BY (k)")
    table.set_policies(compaction={"target_file_size": "1MiB"})
    for _ in range(4):
        append_random(table, 35_000)
    sizes = list_sizes(table)
    assert 0.3 < sizes[0] <= sizes[-1] < 0.4
    done = table.job("compaction")
    assert (done.rewritten, len(list_sizes(table))) == (4, done.added)
    assert done.added < 4


def test_files_of_position_deletes_are_merged_and_converted(create_table: CreateTable) -> None:
    table = create_with_deletes(create_table, 2, rows=100)
    table.do("ALTER TABLE THIS SET TBLPROPERTIES ('write.delete.granularity'='partition')")
    table.do("INSERT INTO THIS SELECT /*+ COALESCE(1) */ id, 1 FROM range(100, 200)")
    table.set_policies(compaction={"target_file_size": "1MiB", "min_input_files": 3, "delete_file_threshold": 9})
    for number in range(3):
        table.do(f"DELETE FROM THIS WHERE n IN ({number}, {100 + number})")
    files = list_delete_files(table)
    dry, done = table.job("compaction", dry_run=True), table.job("compaction")
    assert (dry.rewritten_delete_files, done.rewritten_delete_files, done.added_delete_files) == (len(files), 3, 1)
    assert list_delete_files(table) == [(1, "PARQUET", 6)]
    table.do("ALTER TABLE THIS SET TBLPROPERTIES ('format-version'='3')")
    done = table.job("compaction")
    assert (done.rewritten_delete_files, done.added_delete_files) == (1, 2)
    assert list_delete_files(table) == [(1, "PUFFIN", 3)] * 2
    assert table.job("compaction").rewritten_delete_files == 0
    assert sorted(table.column("SELECT n FROM THIS")) == [*range(3, 100), *range(103, 200)]


def test_compaction_of_some_files_and_of_old_partitions(create_table: CreateTable) -> None:
    table = create_table("partly", "(n int, k int) USING iceberg PARTITIONED BY (k)")
    for number in range(4):
        table.do(f"INSERT INTO THIS VALUES ({number}, {number % 2})")
    table.set_policies(compaction={"min_input_files": 2, "where": "k = 0"})
    assert table.job("compaction", dry_run=True).rewritten == 2
    done = table.job("compaction")
    assert (done.rewritten, done.added) == (2, 1)
    table.set_policies(compaction={"where": "missing = 0"})
    with pytest.raises(PolicyRefusedError, match=r"expected a condition on the table's columns in `where`, found 'mis"):
        table.job("compaction")
    table.do("ALTER TABLE THIS REPLACE PARTITION FIELD k WITH bucket(2, n)")
    table.set_policies(compaction={"min_input_files": 100})
    assert table.job("compaction").rewritten == 0
    table.set_policies(compaction={"min_input_files": 100, "rewrite_old_partitions": True, "where": "k = 0"})
    assert table.job("compaction", dry_run=True).rewritten == 0, "files of k = 1 would remain"
    table.set_policies(compaction={"min_input_files": 100, "rewrite_old_partitions": True})
    assert table.job("compaction").rewritten == 3
    assert table.column("SELECT DISTINCT spec_id FROM THIS.data_files") == [1]
    assert table.job("compaction").rewritten == 0, "once"
    assert sorted(table.column("SELECT n FROM THIS")) == [0, 1, 2, 3]


def test_sort_by_transforms_directions_and_nested_names(create_table: CreateTable) -> None:
    table = create_table("sorted", "(n int, `s p` struct<a: int, `b c`: timestamp>) USING iceberg")
    rows = [f"({n}, named_struct('a', {n % 2}, 'b c', timestamp'2026-01-0{n % 3 + 1} 0{n}:00:00'))" for n in range(6)]
    for half in (rows[:3], rows[3:]):
        table.do(f"INSERT INTO THIS VALUES {', '.join(half)}")
    columns = ["days(`s p`.`b c`) desc nulls last", "`s p`.a", "n DESC"]
    table.set_policies(compaction={"strategy": "sort", "columns": columns, "min_input_files": 2})
    assert table.job("compaction").added == 1
    assert table.column("SELECT n FROM THIS") == [2, 5, 4, 1, 0, 3]
    table.set_policies(compaction={"strategy": "sort", "columns": ["`s p`.z"]})
    with pytest.raises(PolicyRefusedError, match=r"no column s p\.z"):
        table.job("compaction")
