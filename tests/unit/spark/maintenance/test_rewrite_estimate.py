"""The estimate of the files that compaction rewrites, from summaries of commits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.maintenance.jobs import compaction
from lakewright_spark.maintenance.jobs.job import Effect, History
from lakewright_spark.maintenance.table.facts import TableFacts, table_facts
from lakewright_spark.maintenance.table.rewrite_estimate import (
    CommittedFiles,
    Rewrite,
    TableTotals,
    estimate_rewrite,
    read_number,
)
from lakewright_spark.policies.model import CompactionPolicy, TablePolicies
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

MIB = 2**20
NOW = datetime(2026, 11, 22, 2, tzinfo=UTC)
DAY = timedelta(days=1)
TABLE = TableIdentifier("local", ("sales",), "orders")
POLICY = CompactionPolicy.model_validate({"target_file_size": "100MiB"})
ALL_FILES = CompactionPolicy.model_validate({"target_file_size": "100MiB", "rewrite_old_partitions": True})
NOTHING = Rewrite()


def commit(files: int, size: float, partitions: int = 1, ago: timedelta = timedelta()) -> CommittedFiles:
    """Return a commit of files of this size in MiB."""
    return CommittedFiles(NOW - ago, files, int(files * size * MIB), partitions)


def estimate(*commits: CommittedFiles, since: datetime | None = None, **totals: Any) -> Rewrite:
    """Return the estimate for a table that has all files of these commits."""
    size = TableTotals(sum(one.files for one in commits), sum(one.bytes for one in commits))
    return estimate_rewrite(replace(size, **totals), commits, POLICY, since)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (10, Rewrite(10, 1, 100 * MIB)),
        (74.9, Rewrite(10, 8, 749 * MIB)),
        (75, NOTHING),
        (180, NOTHING),
        (180.5, Rewrite(10, 10, 1805 * MIB)),
    ],
)
def test_files_of_the_wrong_size_are_rewritten(size: float, expected: Rewrite) -> None:
    """Iceberg selects files under 75 % and over 180 % of the target size."""
    assert estimate(commit(10, size)) == expected


def test_enough_files_or_bytes_are_needed() -> None:
    assert estimate(commit(4, 10)) == NOTHING
    assert estimate(commit(5, 10)) == Rewrite(5, 1, 50 * MIB)
    assert estimate(commit(2, 50)) == NOTHING
    assert estimate(commit(3, 50)) == Rewrite(3, 2, 150 * MIB)
    assert estimate(commit(1, 10)) == NOTHING
    assert estimate(commit(1, 250)) == Rewrite(1, 1, 250 * MIB)


def test_each_partition_needs_enough_files() -> None:
    assert estimate(commit(49, 1, partitions=10)) == NOTHING
    assert estimate(commit(10, 30, partitions=10)) == NOTHING, "no partition has enough bytes"
    assert estimate(commit(1, 250, partitions=5)) == Rewrite(1, 1, 250 * MIB), "only its partition has files to rewrite"
    assert estimate(commit(50, 1, partitions=10)) == Rewrite(50, 10, 50 * MIB)
    several = (commit(25, 1, partitions=10), commit(25, 1, partitions=2))
    assert estimate(*several) == Rewrite(50, 10, 50 * MIB), "commits share partitions"
    deletes = commit(0, 0, partitions=10)
    assert estimate(commit(10, 1), deletes) == Rewrite(10, 1, 10 * MIB), "commits of deletes have no data files"


def test_only_new_small_files_are_rewritten() -> None:
    old, new = commit(20, 100, ago=2 * DAY), commit(6, 1, ago=DAY)
    assert estimate(old, new, since=NOW - DAY) == Rewrite(6, 1, 6 * MIB), "a commit while compaction ran is new"
    assert estimate(old, new, since=NOW) == NOTHING, "its mean size stands for all old files"
    assert estimate(old, new) == Rewrite(6, 1, 6 * MIB)


def test_old_files_without_commits_are_counted() -> None:
    """Snapshots expire; the totals still have their files."""
    totals = TableTotals(data_files=12, bytes=24 * MIB)
    assert estimate_rewrite(totals, (), POLICY, None) == Rewrite(12, 1, 24 * MIB)
    assert estimate_rewrite(totals, [commit(2, 2)], POLICY, NOW - DAY) == Rewrite(6, 1, 12 * MIB)
    assert estimate_rewrite(TableTotals(12, 1200 * MIB), (), POLICY, NOW) == NOTHING


def test_small_old_files_join_new_files() -> None:
    assert estimate(commit(2, 30, ago=DAY), commit(4, 5), since=NOW) == Rewrite(6, 1, 80 * MIB)
    assert estimate(commit(10, 70, ago=DAY), commit(8, 25), since=NOW) == Rewrite(9, 3, 270 * MIB), "a target size"


@pytest.mark.parametrize(
    ("old", "new", "partitions", "expected"),
    [
        ((2, 60), (8, 1), 1, Rewrite(9, 1, 28 * MIB)),
        ((11, 92), (8, 1), 1, Rewrite(9, 1, 20 * MIB)),
        ((7, 60), (42, 1), 7, Rewrite(49, 7, 462 * MIB)),
        ((14, 60), (42, 1), 7, Rewrite(49, 7, 182 * MIB)),
        ((1000, 50), (35, 1), 1000, Rewrite(42, 7, 385 * MIB)),
        ((1000, 50), (20, 1), 4, Rewrite(28, 5, 420 * MIB)),
        ((10, 190), (8, 1), 1, Rewrite(18, 18, 1908 * MIB)),
    ],
    ids=["rest", "rest of many", "partitions", "rests", "some partitions", "unknown partitions", "larger target"],
)
def test_compacted_files_are_not_rewritten_again(
    old: tuple[int, float], new: tuple[int, float], partitions: int, expected: Rewrite
) -> None:
    """Regression: a file of the target size and a small file counted as two files of their mean size.

    A compaction leaves files of the target size and one small file in each partition.
    """
    compacted, added = commit(*old, ago=DAY), commit(*new, partitions=min(partitions, 7))
    assert estimate(compacted, added, since=NOW, partitions=partitions) == expected


@pytest.mark.parametrize(
    ("files", "size", "partitions", "expected"),
    [
        (8, 126, 1, Rewrite(7, 1, 26 * MIB)),
        (49, 476, 7, Rewrite(49, 7, 476 * MIB)),
        (49, 889, 7, Rewrite(42, 7, 189 * MIB)),
        (8, 800, 1, NOTHING),
    ],
)
def test_commits_since_the_last_compaction_have_expired(
    files: int, size: int, partitions: int, expected: Rewrite
) -> None:
    """The bytes say how many full files the last compaction left."""
    totals = TableTotals(files, size * MIB, partitions=partitions, commits_since=NOW)
    assert estimate_rewrite(totals, (), POLICY, NOW - DAY) == expected
    assert estimate_rewrite(totals, (), POLICY, NOW) == NOTHING, "no commit is unknown"


def test_sorted_files_have_a_similar_size() -> None:
    policy = POLICY.model_copy(update={"strategy": "sort"})
    size, added = TableTotals(10, 128 * MIB), commit(8, 1)
    assert estimate_rewrite(size, [added], policy, NOW) == Rewrite(10, 2, 128 * MIB)


@pytest.mark.parametrize("totals", [{"deleted_share": 0.3}, {"deleted_share": 7.0}, {"delete_files": 50}])
def test_deletes_select_all_files(totals: dict[str, Any]) -> None:
    assert estimate(commit(10, 100), **totals) == Rewrite(10, 10, 1000 * MIB)
    assert estimate(commit(3, 10), **totals) == Rewrite(3, 1, 30 * MIB), "three files suffice"


@pytest.mark.parametrize("totals", [{"deleted_share": 0.29}, {"delete_files": 49}])
def test_few_deletes_select_no_file(totals: dict[str, Any]) -> None:
    assert estimate(commit(10, 100), **totals) == NOTHING


def test_old_partitions_select_all_files() -> None:
    for files, added in ((commit(3, 100), 3), (commit(3, 30), 1)):
        totals = TableTotals(3, files.bytes)
        assert estimate_rewrite(totals, [files], ALL_FILES, None) == Rewrite(3, added, files.bytes)


@pytest.mark.parametrize("policy", [POLICY, ALL_FILES])
def test_empty_table_has_nothing_to_rewrite(policy: CompactionPolicy) -> None:
    """Files of an earlier commit were deleted; delete files and the share of deleted rows may remain."""
    for totals in (TableTotals(0, 0), TableTotals(0, 0, delete_files=9, deleted_share=1.0)):
        assert estimate_rewrite(totals, (), policy, None) == NOTHING
        assert estimate_rewrite(totals, [commit(100, 1)], policy, None) == NOTHING


def test_replaced_files_are_counted_once() -> None:
    """Three commits overwrite the same ten files."""
    totals = TableTotals(10, 20 * MIB)
    assert estimate_rewrite(totals, [commit(10, 2)] * 3, POLICY, None) == Rewrite(10, 1, 20 * MIB)


numbers = st.integers(0, 2**63 - 1)
additions = st.lists(st.builds(CommittedFiles, st.sampled_from([NOW - DAY, NOW]), numbers, numbers, numbers))


@given(
    st.builds(
        TableTotals, numbers, numbers, numbers, st.floats(0, 2), numbers, st.sampled_from([None, NOW - DAY, NOW + DAY])
    ),
    additions,
    st.sampled_from([POLICY, ALL_FILES]),
    st.sampled_from([None, NOW]),
)
def test_estimate_never_exceeds_the_table(
    totals: TableTotals, commits: list[CommittedFiles], policy: CompactionPolicy, since: datetime | None
) -> None:
    rewrite = estimate_rewrite(totals, commits, policy, since)
    assert 0 <= rewrite.added <= rewrite.rewritten <= totals.data_files
    assert 0 <= rewrite.bytes <= totals.bytes
    assert (rewrite.added == 0) == (rewrite.rewritten == 0)


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ({}, (0, 0, 1)),
        ({"added-data-files": "3", "added-files-size": "99", "changed-partition-count": "2"}, (3, 99, 2)),
        ({"added-data-files": "3"}, (3, 0, 1)),
        ({"added-data-files": "3", "added-files-size": "99", "changed-partition-count": "0"}, (3, 99, 1)),
        ({"added-delete-files": "3", "added-files-size": "99", "changed-partition-count": "2"}, (0, 0, 2)),
    ],
)
def test_files_of_a_commit(summary: Mapping[str, str], expected: tuple[int, int, int]) -> None:
    files = CommittedFiles.from_summary(1_000, summary)
    assert (files.files, files.bytes, files.partitions) == expected
    assert files.committed_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "many", "²", "9" * 400, "9" * 5000])
def test_summary_without_a_usable_number(text: str) -> None:
    """Regression: a superscript, and a number longer than Python's limit, raised ValueError."""
    assert read_number({"n": text}, "n") is None
    assert read_number({}, "n") is None
    assert read_number({"n": str(2**63 - 1)}, "n") == 2**63 - 1


def test_prediction_of_a_table_without_totals() -> None:
    facts = TableFacts(table=TABLE, uuid="u", properties={}, touched_at=NOW)
    assert compaction.predict(facts, TablePolicies(), History()) == Effect()
    assert compaction.predict(replace(facts, additions=(commit(9, 1),)), TablePolicies(), History()) == Effect()


def test_prediction_begins_at_the_last_compaction() -> None:
    commits = (commit(20, 400, ago=2 * DAY), commit(8, 1))
    facts = TableFacts(
        table=TABLE,
        uuid="u",
        properties={},
        touched_at=NOW,
        data_files=28,
        data_bytes=8008 * MIB,
        delete_files=0,
        additions=commits,
    )
    policies = TablePolicies()
    assert compaction.predict(facts, policies, History({"compaction": NOW - DAY})) == Effect(7, 8 * MIB, 8)
    assert compaction.predict(facts, policies, History({"statistics": NOW + DAY})) == Effect(7, 8 * MIB, 8)
    after_both = compaction.predict(facts, policies, History({"compaction": NOW + DAY}))
    assert after_both == Effect(), "a compaction leaves nothing to rewrite"
    large = replace(facts, data_bytes=28 * 512 * MIB, additions=())
    assert compaction.predict(large, policies, History()) == Effect()
    for deletes in ({"deleted_share": 0.5}, {"delete_files": 5 * 28}):
        assert compaction.predict(replace(large, **deletes), policies, History()).rewritten == 28


def test_equality_deletes_of_a_large_table_need_the_usual_number() -> None:
    """Only a small table is rewritten as a whole for its first equality delete."""
    small, large = commit(1, 100), commit(5, 100)
    assert estimate(small, equality_deletes=1, delete_files=1) == Rewrite(1, 1, 100 * MIB)
    assert estimate(large, equality_deletes=1, delete_files=1) == NOTHING
    assert estimate(large, equality_deletes=5, delete_files=5) == Rewrite(5, 5, 500 * MIB)


def create_table(catalog: SqlCatalog, appends: int) -> Table:
    catalog.create_namespace_if_not_exists("sales")
    rows = pa.table({"n": [1, 2, 3]})
    table = catalog.create_table("sales.orders", rows.schema)
    for _ in range(appends):
        table.append(rows)
    return table


def change_summary(table: Table, **changes: str) -> Table:
    """Change the summary of the current snapshot in the metadata file."""
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]}
    summary = snapshots[document["current-snapshot-id"]]["summary"]
    summary.update({key.replace("_", "-"): text for key, text in changes.items()})
    path.write_text(json.dumps(document))
    return table.refresh()


def test_facts_of_a_table_without_snapshots(local_catalog: SqlCatalog) -> None:
    facts = table_facts(TABLE, create_table(local_catalog, 0))
    assert (facts.data_files, facts.additions, facts.deleted_share) == (None, (), 0.0)
    assert compaction.predict(facts, TablePolicies(), History()) == Effect()


def test_facts_have_nested_types_that_spark_cannot_read(local_catalog: SqlCatalog) -> None:
    """PyIceberg reads tables of format version 3, but does not create them."""
    table = create_table(local_catalog, 1)
    assert table_facts(TABLE, table).unreadable_types == ()
    times = {"type": "list", "element-id": 3, "element": "timestamp_ns", "element-required": False}
    times_field = {"id": 2, "name": "times", "type": times, "required": False}
    struct_field = {"id": 4, "name": "s", "type": {"type": "struct", "fields": [times_field]}, "required": False}
    document = table.metadata.model_dump(mode="json", by_alias=True)
    document["schemas"][0]["fields"].append(struct_field)
    document |= {"format-version": 3, "next-row-id": 0, "last-column-id": 4}
    table.metadata = TableMetadataUtil.parse_obj(document)
    assert table_facts(TABLE, table).unreadable_types == ("timestamp_ns",)


def test_facts_have_the_files_of_commits(local_catalog: SqlCatalog) -> None:
    table = create_table(local_catalog, 6)
    facts = table_facts(TABLE, table)
    sizes = [task.file.file_size_in_bytes for task in table.scan().plan_files()]
    assert [one.files for one in facts.additions] == [1] * 6
    assert sorted(one.bytes for one in facts.additions) == sorted(sizes)
    assert (facts.data_files, facts.data_bytes) == (6, sum(sizes))
    assert compaction.predict(facts, TablePolicies(), History()) == Effect(5, sum(sizes), 6)
    assert facts.drop_history().additions == facts.only_places().additions == ()


def test_rewrites_and_other_branches_add_no_files(local_catalog: SqlCatalog) -> None:
    """Regression: a branch with small files made the mean size of the files of `main` wrong."""
    table = create_table(local_catalog, 2)
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    table.manage_snapshots().create_branch(first, "audit").commit()
    for _ in range(5):
        table.append(pa.table({"n": [1]}), branch="audit")
    assert len(table_facts(TABLE, table).additions) == 2
    table = change_summary(table, operation="replace")
    at = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in table.metadata.snapshots}
    (remaining,) = table_facts(TABLE, table).additions
    assert remaining == CommittedFiles.from_summary(
        at[first], {"added-data-files": "1", "added-files-size": str(remaining.bytes)}
    )
    assert table.metadata.current_snapshot_id == second
    assert table_facts(TABLE, change_summary(table, changed_partition_count="9")).partitions == 9


def test_facts_have_the_time_of_the_oldest_known_commit(local_catalog: SqlCatalog) -> None:
    table = create_table(local_catalog, 3)
    assert table_facts(TABLE, table).commits_since is None, "no commit has expired"
    first, second, _ = table.metadata.snapshots
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    facts = table_facts(TABLE, table.refresh())
    assert (len(facts.additions), facts.commits_since) == (2, to_instant(second.timestamp_ms))


def test_commits_after_a_compaction_are_known(local_catalog: SqlCatalog) -> None:
    """Only the commits before the rewrite have expired."""
    table = change_summary(create_table(local_catalog, 2), operation="replace")
    first, second = table.metadata.snapshots
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    table = table.refresh()
    assert [snapshot.snapshot_id for snapshot in table.metadata.snapshots] == [second.snapshot_id]
    assert table_facts(TABLE, change_summary(table, operation="replace")).commits_since is None
    moved_nothing = change_summary(table, operation="replace", added_data_files="0")
    assert table_facts(TABLE, moved_nothing).commits_since is not None, "manifests were rewritten"


def test_facts_have_the_share_of_deleted_rows(local_catalog: SqlCatalog) -> None:
    table = change_summary(create_table(local_catalog, 1), total_position_deletes="2", total_records="8")
    assert table_facts(TABLE, table).deleted_share == 0.25
    assert table_facts(TABLE, change_summary(table, total_records="0")).deleted_share == 2.0
    for text in ("many", "9" * 400):
        assert table_facts(TABLE, change_summary(table, total_position_deletes=text)).deleted_share == 0.0
