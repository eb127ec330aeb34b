"""Jobs `refs` and `engine-statistics` on real tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lakewright_spark.errors import JobFailedError, PolicyRefusedError
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.maintenance.table.removed_refs import read_removed_refs

from tests.spark.maintenance.conftest import DAY, Maintained, deny

pytestmark = pytest.mark.spark
CreateTable = Callable[..., Maintained]


def read_refs(table: Maintained) -> dict[str, Any]:
    query = "SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM THIS.refs"
    return {row[0]: tuple(row)[1:] for row in table.do(query).collect() if row[0] != "main"}


def test_declared_branches_and_tags(create_table: CreateTable) -> None:
    """They are created with their retention, changed, and removed. Branches of a user and commits remain."""
    table = create_table("referenced", "(n int) USING iceberg")
    table.now -= 30 * DAY
    day = 86_400_000
    branch = {"type": "branch", "min_snapshots": 3, "max_snapshot_age_days": 9}
    table.set_policies(refs={"audit": branch, "work": {"type": "branch"}, "close": {"type": "tag", "max_age_days": 30}})
    assert table.job("refs").reason == "no snapshot is young enough for audit, work, close"
    table.do("INSERT INTO THIS VALUES (1)")
    table.do("ALTER TABLE THIS CREATE BRANCH theirs")
    assert table.job("refs", dry_run=True).created == ("audit", "work", "close")
    assert table.job("refs").created == ("audit", "work", "close")
    assert read_refs(table) == {
        "audit": ("BRANCH", None, 3, 9 * day),
        "work": ("BRANCH", None, None, None),
        "close": ("TAG", 30 * day, None, None),
        "theirs": ("BRANCH", None, None, None),
    }
    assert table.job("refs") == type(table.job("refs"))(), "nothing to change"

    table.do("INSERT INTO THIS.branch_work VALUES (2)")
    snapshot = Metadata.read(IcebergTable.open(table.spark, table.table)).refs
    table.set_policies(refs={"audit": {"type": "branch", "max_age_days": 5}, "theirs": {"type": "branch"}})
    done = table.job("refs")
    assert (done.changed, done.removed, done.unmerged) == (("audit",), ("close",), ("work",))
    assert done.failure.startswith("branch work is no longer declared and has commits that main does not have")
    assert read_refs(table)["audit"] == ("BRANCH", 5 * day, None, None)
    heads = {ref.name: ref.snapshot for ref in Metadata.read(IcebergTable.open(table.spark, table.table)).refs}
    assert heads == {ref.name: ref.snapshot for ref in snapshot if ref.name != "close"}

    properties = dict(IcebergTable.open(table.spark, table.table).java.properties())
    assert read_removed_refs(properties).keys() == {ref.snapshot for ref in snapshot if ref.name == "close"}

    table.do("ALTER TABLE THIS DROP BRANCH work")
    table.set_policies()
    assert table.job("refs").removed == ("audit",)
    assert read_refs(table).keys() == {"theirs"}


def test_tag_of_a_user_with_an_earlier_name_remains(create_table: CreateTable) -> None:
    """The job once created a tag of this name, which a user dropped."""
    table = create_table("named_again", "(n int) USING iceberg")
    table.do("INSERT INTO THIS VALUES (1)")
    table.set_policies(refs={"quarter": {"type": "tag"}})
    assert table.job("refs").created == ("quarter",)
    table.do("ALTER TABLE THIS DROP TAG quarter")
    table.set_policies()
    table.job("refs")
    table.do("ALTER TABLE THIS CREATE TAG quarter")
    assert table.job("refs").removed == ()
    assert read_refs(table).keys() == {"quarter"}


def test_statistics_for_engines(create_table: CreateTable) -> None:
    table = create_table("measured", "(k string, n int) USING iceberg PARTITIONED BY (k)")
    table.set_policies(engine_statistics={"columns": ["n"]})
    assert table.job("engine-statistics").reason == "no rows"
    table.do("INSERT INTO THIS VALUES ('a', 1), ('a', 2), ('b', 2)")
    done = table.job("engine-statistics")
    assert (done.partitions, done.columns) == (True, True)
    (file,) = iterate(IcebergTable.open(table.spark, table.table).java.statisticsFiles())
    (blob,) = iterate(file.blobMetadata())
    assert blob.properties()["ndv"] == "2"
    assert table.job("orphan-files").candidates == 0
    assert table.column("SELECT sum(n) FROM THIS") == [5]

    table.set_policies(engine_statistics={"columns": ["k", "n"]})
    table.job("engine-statistics")
    (file,) = iterate(IcebergTable.open(table.spark, table.table).java.statisticsFiles())
    assert len(list(iterate(file.blobMetadata()))) == 2, "Lakekeeper does not replace the statistics of a snapshot"

    table.set_policies(engine_statistics={"partitions": False, "columns": ["no_such"]})
    with pytest.raises(PolicyRefusedError, match="expected columns of the table, k, n; there is no no_such"):
        table.job("engine-statistics")
    table.set_policies()
    assert table.job("engine-statistics").reason == "no policy"


def test_last_tag_of_a_table_remains(create_table: CreateTable) -> None:
    """Lakekeeper would respond with success and keep it, so the job would remove it again and again."""
    table = create_table("without_main", "(n int) USING iceberg")
    table.do("INSERT INTO THIS VALUES (1)")
    table.set_policies(refs={"close": {"type": "tag"}})
    assert table.job("refs").created == ("close",)
    table.do("CREATE OR REPLACE TABLE THIS (n int) USING iceberg")
    table.set_policies()

    done = table.job("refs")

    assert done.removed == ()
    assert done.reason == "close is the table's last branch or tag, which Lakekeeper does not remove"
    assert read_refs(table).keys() == {"close"}
    assert table.column("SELECT n FROM THIS") == []


def test_overdue_tag_of_a_table_without_main_remains(create_table: CreateTable) -> None:
    """An expiration would remove the tag together with its files, without a time for its readers."""
    table = create_table("without_rows", "(n int) USING iceberg")
    table.do("INSERT INTO THIS VALUES (1)")
    table.do("ALTER TABLE THIS CREATE TAG close RETAIN 1 DAYS")
    table.do("CREATE OR REPLACE TABLE THIS (n int) USING iceberg")
    before = table.objects()

    done = table.job("snapshot-expiration")

    assert (done.state, done.snapshots) == ("SKIPPED", 0)
    assert done.reason.startswith("the table has no branch main, and each branch and tag is past its age: close.")
    assert before.keys() <= table.objects().keys()
    assert table.column("SELECT n FROM THIS VERSION AS OF 'close'") == [1]
    table.do("INSERT INTO THIS VALUES (2)")
    assert table.job("snapshot-expiration").removed_refs == ("close",)


@pytest.mark.stand_in("denies a role an action on AWS")
def test_statistics_remain_if_their_replacement_fails(create_table: CreateTable) -> None:
    table = create_table("counted", "(k string, n int, parts array<int>) USING iceberg")
    table.set_policies(engine_statistics={"columns": ["n"]})
    table.do("INSERT INTO THIS VALUES ('a', 1, array(1))")
    table.job("engine-statistics")
    first = list_statistics(table)
    assert [columns for _, columns in first] == [1]
    table.job("engine-statistics")
    assert list_statistics(table) == first, "the snapshot has them"

    table.set_policies(engine_statistics={"columns": ["n", "parts"]})
    with pytest.raises(PolicyRefusedError, match=r"expected columns without parts, k, n; found parts list<int>"):
        table.job("engine-statistics")
    table.set_policies(engine_statistics={"columns": "all"})
    with deny(table, "s3:PutObject", "metadata/*.stats"), pytest.raises(JobFailedError):
        table.job("engine-statistics")
    assert list_statistics(table) == first

    assert table.job("engine-statistics").columns
    assert [columns for _, columns in list_statistics(table)] == [2]


def list_statistics(table: Maintained) -> list[tuple[str, int]]:
    """Return path and number of columns of each statistics file."""
    files = iterate(IcebergTable.open(table.spark, table.table).java.statisticsFiles())
    return [(file.path(), len(list(iterate(file.blobMetadata())))) for file in files]
