"""Listings of a table's location: ranges of keys that executors list, and listings of the user."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.table import location_listing
from lakewright_spark.maintenance.table.candidates import find_unreferenced_files
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.maintenance.table.location_listing import find_boundaries, list_location
from lakewright_spark.maintenance.table.metadata import Metadata
from lakewright_spark.session.own_classes import call_own_class
from pyspark.sql import DataFrame

from tests.spark.maintenance.conftest import DAY, Maintained

pytestmark = pytest.mark.spark
CreateTable = Callable[..., Maintained]


def list_files(table: Maintained, opened: IcebergTable) -> list[str]:
    return sorted(row.file_path for row in list_location(opened).collect())


def test_executors_list_ranges_of_keys(create_table: CreateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is in one range, whatever the alphabet. Hidden files are left out."""
    table = create_table("wide", "(n int, `_day` int) USING iceberg PARTITIONED BY (`_day`)")
    table.do("INSERT INTO THIS SELECT id, id % 6 FROM range(6)")
    names = ["_day=1/é.parquet", "_day=2/\U0001f600.parquet", "_day=2/\uffee.parquet", "zz/last", "aa/first"]
    lost = [table.create_lost_file(name) for name in names]
    hidden = [table.create_lost_file(name) for name in ("_SUCCESS", ".staging/part", "_day=1/_temporary/0/x")]
    assert {*lost, *hidden} <= table.objects().keys()
    opened = IcebergTable.open(table.spark, table.table)
    monkeypatch.setattr(location_listing, "FILES_PER_TASK", 2)
    assert len(find_boundaries(opened)) == 2
    expected = sorted(table.objects().keys() - {*hidden})
    assert list_files(table, opened) == expected
    assert list_location(opened).rdd.getNumPartitions() == 3

    monkeypatch.setattr(location_listing, "find_boundaries", lambda _: sorted(lost, key=str.encode))
    assert list_files(table, opened) == expected
    with find_unreferenced_files(opened, table.now) as unreferenced:
        assert sorted(row.file_path for row in unreferenced.collect()) == sorted(lost)
    assert not {*lost} & Metadata.read(opened).list_referenced_files()


def test_a_sample_has_a_part_of_the_files(create_table: CreateTable) -> None:
    table = create_table("sampled", "(n int) USING iceberg")
    opened = IcebergTable.open(table.spark, table.table)
    paths = {f"{opened.location}/data/{number}.parquet" for number in range(200)}
    append = opened.java.newAppend()
    for path in paths:
        file = opened.find_class("org.apache.iceberg.DataFiles").builder(opened.java.spec()).withPath(path)
        append.appendFile(file.withFileSizeInBytes(1).withRecordCount(1).build())
    append.commit()

    def sample(prefix: str, step: int) -> set[str]:
        java = call_own_class(table.spark, "lakewright.spark.LocationListing", "sample", opened.java, prefix, step, 2)
        return {row.value for row in DataFrame(java, table.spark).collect()}

    half = sample(f"{opened.location}/", 2)
    assert half < paths
    assert 60 < len(half) < 140
    assert sample(f"{opened.location}/", 1) == paths
    assert sample(f"{opened.location}/other/", 1) == set()


@pytest.mark.long
def test_listing_of_the_user(create_table: CreateTable) -> None:
    """Files of a table with a similar location, young files, and files of the table are never candidates."""
    table = create_table("inventoried", "AS SELECT 1 AS n")
    lost = table.create_lost_file("lost.parquet")
    opened = IcebergTable.open(table.spark, table.table)
    other = f"{opened.location}2/data/other.parquet"
    backup, young = f"{opened.location}/.backup/data.json", f"{opened.location}/data/young.parquet"
    old = [(path, table.now - 10 * DAY) for path in [*table.objects(), other, backup]]
    listing = table.spark.createDataFrame([*old, (young, table.now)], "file_path string, last_modified timestamp")
    listing.createOrReplaceTempView("inventory")
    table.set_policies(orphan_files={"older_than_days": 1, "listing": "inventory"})
    assert table.job("orphan-files").candidates == 1
    query = f"SELECT file_path FROM results.ops.orphan_candidates WHERE table_uuid = '{opened.uuid}'"
    assert table.column(query) == [lost]

    unseen = table.create_lost_file("unseen.parquet")
    table.now += 10 * DAY
    assert table.job("staged-files").deleted == 1
    assert {lost, unseen} & table.objects().keys() == {unseen}
    assert table.job("staged-files").deleted == 0

    for listing, reason in (("no_such", "TABLE_OR_VIEW_NOT_FOUND"), ("wrong", "found file_path string")):
        table.spark.sql("SELECT 'a' AS file_path").createOrReplaceTempView("wrong")
        table.set_policies(orphan_files={"listing": listing})
        with pytest.raises(PolicyRefusedError, match=reason):
            table.job("orphan-files")
