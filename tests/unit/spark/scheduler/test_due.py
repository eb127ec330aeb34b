"""Which jobs a table is due for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright_spark.maintenance.jobs.compaction import describe_basis
from lakewright_spark.maintenance.jobs.job import NIGHTLY, WEEKLY, History, compute_pause
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import JOBS, JobName, TablePolicies
from lakewright_spark.scheduler.plan import decide
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
PAUSE, ORPHANS_PAUSE = compute_pause(NIGHTLY), compute_pause(WEEKLY)
MiB = 2**20


def facts(**more: Any) -> TableFacts:
    """Return facts of a table that was written an hour ago, with ten files of 1 MiB."""
    at = NOW - HOUR
    fields: dict[str, Any] = {
        "table": TableIdentifier("w", ("a",), "t"),
        "uuid": "u",
        "properties": {},
        "snapshots": (Snapshot(1, None, at),),
        "refs": (Ref("main", "BRANCH", 1),),
        "snapshot": 1,
        "changed_at": at,
        "touched_at": at,
        "data_files": 10,
        "delete_files": 0,
        "data_bytes": 10 * MiB,
    }
    return TableFacts(**{**fields, **more})


EMPTY = {"snapshots": (), "refs": (), "snapshot": None, "changed_at": None, "data_files": None, "data_bytes": None}
DELETES = {"data_files": 3, "equality_deletes": 0}
LONG_AGO = (Snapshot(1, None, NOW - 9 * 24 * HOUR), Snapshot(2, 1, NOW - 48 * HOUR))


def commits(number: int) -> tuple[Snapshot, ...]:
    """Return one old snapshot and this number of snapshots of an hour ago."""
    old = Snapshot(1, None, NOW - 9 * 24 * HOUR)
    return (old, *(Snapshot(n + 2, n + 1, NOW - HOUR) for n in range(number)))


def due(table: TableFacts, policies: TablePolicies | None = None, history: History | None = None) -> set[JobName]:
    decisions = decide(table, policies or TablePolicies(), history or History(), NOW)
    return {decision.job for decision in decisions if decision.verdict == "due"}


def done(job: JobName, ago: timedelta) -> History:
    return History({job: NOW - ago})


def test_new_table() -> None:
    assert due(facts()) == {"orphan-files", "compaction", "rewrite-manifests", "statistics"}
    assert due(facts(**EMPTY)) == {"orphan-files", "statistics"}


def test_job_order_and_selection() -> None:
    assert tuple(decision.job for decision in decide(facts(), TablePolicies(), History(), NOW)) == JOBS
    decisions = decide(facts(), TablePolicies(), History(), NOW, jobs=["compaction", "retention"])
    assert [decision.job for decision in decisions] == ["retention", "compaction"]


@pytest.mark.parametrize(
    ("job", "policies", "changes", "history", "expected"),
    [
        ("retention", {}, {}, History(), False),
        ("retention", {"retention": {"keep": 1, "column": "d"}}, {}, History(), True),
        ("retention", {"retention": {"keep": 1, "column": "d"}}, EMPTY, History(), False),
        ("retention", {"retention": {"keep": 1, "column": "d"}}, {}, done("retention", PAUSE - HOUR), False),
        (
            "retention",
            {"retention": {"keep": 1, "column": "d", "unit": "hour"}},
            {},
            done("retention", HOUR),
            True,
        ),
        ("snapshot-expiration", {}, {"snapshots": LONG_AGO, "refs": (Ref("main", "BRANCH", 2),)}, History(), True),
        (
            "snapshot-expiration",
            {},
            {
                "snapshots": LONG_AGO,
                "refs": (Ref("main", "BRANCH", 2),),
                "properties": {"gc.enabled": "false"},
            },
            History(),
            False,
        ),
        (
            "snapshot-expiration",
            {},
            {"snapshots": LONG_AGO, "refs": (Ref("main", "BRANCH", 2), Ref("v1", "TAG", 1))},
            History(),
            False,
        ),
        ("orphan-files", {}, {}, done("orphan-files", ORPHANS_PAUSE), True),
        ("orphan-files", {}, {}, done("orphan-files", ORPHANS_PAUSE - HOUR), False),
        ("staged-files", {}, {}, History({}, NOW - timedelta(days=3)), True),
        ("staged-files", {}, {}, History({}, NOW - timedelta(days=2)), False),
        ("staged-files", {"staged_files": {"older_than_days": 1}}, {}, History({}, NOW - timedelta(days=2)), True),
        ("compaction", {}, {"data_files": 4}, History(), False),
        ("compaction", {}, {"data_files": 1, "data_bytes": 2000 * MiB}, History(), True),
        ("compaction", {}, {"data_files": 10, "data_bytes": 4500 * MiB}, History(), True),
        ("compaction", {}, {"data_files": 1, "delete_files": 1}, History(), True),
        ("compaction", {}, {**DELETES, "delete_files": 1}, History(), False),
        ("compaction", {}, {**DELETES, "delete_files": 4, "deleted_share": 0.05}, History(), False),
        ("compaction", {}, {**DELETES, "delete_files": 4, "deleted_share": 0.1}, History(), True),
        ("compaction", {}, {**DELETES, "delete_files": 5}, History(), True),
        ("compaction", {"compaction": {"delete_file_threshold": 2}}, {**DELETES, "delete_files": 2}, History(), True),
        ("compaction", {}, {**DELETES, "delete_files": 1, "equality_deletes": 1}, History(), True),
        (
            "compaction",
            {"compaction": {"where": "d > 1"}},
            {**DELETES, "delete_files": 1, "equality_deletes": 1},
            History(),
            False,
        ),
        (
            "compaction",
            {"compaction": {"equality_delete_threshold": 2}},
            {**DELETES, "delete_files": 1, "equality_deletes": 1},
            History(),
            False,
        ),
        ("compaction", {"compaction": {"rewrite_old_partitions": True}}, {"data_files": 1}, History(), True),
        (
            "compaction",
            {"compaction": {"rewrite_old_partitions": True, "where": "d > 1"}},
            {"data_files": 1},
            History(),
            False,
        ),
        ("compaction", {}, {}, done("compaction", HOUR / 2), False),
        ("compaction", {}, {}, done("compaction", 2 * HOUR), True),
        ("rewrite-manifests", {}, {}, done("rewrite-manifests", 2 * HOUR), False),
        ("rewrite-manifests", {}, {}, done("rewrite-manifests", PAUSE), True),
        ("rewrite-manifests", {}, {"data_files": 9}, History(), False),
        ("rewrite-manifests", {}, {"data_files": 1, "delete_files": 9}, History(), True),
        ("rewrite-manifests", {}, {"data_files": 9, "delete_files": None}, History(), True),
        ("rewrite-manifests", {}, {"data_files": None}, History(), True),
        ("rewrite-manifests", {}, {"snapshots": commits(9)}, done("rewrite-manifests", PAUSE), False),
        ("rewrite-manifests", {}, {"snapshots": commits(10)}, done("rewrite-manifests", PAUSE), True),
        ("rewrite-manifests", {}, {"snapshots": commits(9)[1:], "refs": ()}, done("rewrite-manifests", PAUSE), True),
        ("statistics", {}, {}, done("statistics", PAUSE), True),
        ("statistics", {}, {"touched_at": NOW - 2 * PAUSE}, done("statistics", PAUSE), False),
        ("statistics", {}, {"unreadable_types": ("timestamp_ns",)}, History(), False),
        ("compaction", {}, {"unreadable_types": ("timestamp_ns",)}, History(), False),
        ("orphan-files", {}, {"unreadable_types": ("timestamp_ns",)}, History(), True),
    ],
)
def test_reasons_for_a_due_job(
    job: JobName, policies: dict[str, Any], changes: dict[str, Any], history: History, *, expected: bool
) -> None:
    assert (job in due(facts(**changes), TablePolicies.model_validate(policies), history)) == expected


OLD_PARTITIONS = {"rewrite_old_partitions": True}


@pytest.mark.parametrize(
    ("before", "after", "changes", "expected"),
    [
        ({}, {}, {}, "unchanged since"),
        ({}, {"partial_progress_commits": 3, "max_group_size": "1GiB"}, {}, "unchanged since"),
        ({}, {"min_input_files": 5}, {}, "unchanged since"),
        ({}, {"min_input_files": 3}, {}, "the policy changed"),
        ({}, OLD_PARTITIONS, {}, "the policy changed"),
        ({}, {"min_input_files": 30}, {}, "10 data files with few deletes; at least 30"),
        ({}, {}, {"partition_spec": 1}, "unchanged since"),
        (OLD_PARTITIONS, OLD_PARTITIONS, {"partition_spec": 1}, "the default partition spec changed"),
        ({}, {}, {"format_version": 3}, "unchanged since"),
        ({}, {}, {"format_version": 3, "delete_files": 1}, "the table was upgraded to format version 3"),
        ({}, {}, {**DELETES, "format_version": 3, "delete_files": 1}, "the table was upgraded to format version 3"),
    ],
)
def test_idle_table_is_due_after_a_change_beside_its_rows(
    before: dict[str, Any], after: dict[str, Any], changes: dict[str, Any], expected: str
) -> None:
    earlier = describe_basis(facts(), TablePolicies.model_validate({"compaction": before}))
    history = History({"compaction": NOW - HOUR / 2}, bases={"compaction": earlier})
    policies = TablePolicies.model_validate({"compaction": after})
    (decision,) = decide(facts(**changes), policies, history, NOW, jobs=["compaction"])
    is_due = not expected.startswith(("unchanged", "10 data files"))
    assert (decision.verdict, decision.reason[: len(expected)]) == ("due" if is_due else "not due", expected)
    done_again = describe_basis(facts(**changes), policies)
    history = History({"compaction": NOW - HOUR / 2}, bases={"compaction": done_again})
    assert "compaction" not in due(facts(**changes), policies, history), "once"
    assert "compaction" not in due(facts(**changes), policies, done("compaction", HOUR / 2)), "of an earlier release"


@pytest.mark.parametrize("basis", [{"policy": "00ff"}, {"format_version": "new", "partition_spec": 0}, ["a list"]])
def test_basis_of_another_form_is_ignored(basis: Any) -> None:
    history = History({"compaction": NOW - HOUR / 2}, bases={"compaction": basis})
    assert "compaction" not in due(facts(), history=history)


def test_due_job_that_is_not_allowed_is_held() -> None:
    policies = TablePolicies.model_validate({"maintenance": {"disabled_jobs": ["statistics"]}})
    decisions = {
        decision.job: decision for decision in decide(facts(), policies, History(), NOW, busy="execution 7 runs")
    }
    assert (decisions["statistics"].verdict, decisions["statistics"].reason) == ("held", "statistics is switched off")
    assert (decisions["compaction"].verdict, decisions["compaction"].reason) == ("held", "execution 7 runs")
    assert decisions["retention"].verdict == "not due", "what is not due needs no permission"
