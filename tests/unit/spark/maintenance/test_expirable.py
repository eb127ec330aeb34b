"""Snapshots that an expiration removes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.jobs import snapshot_expiration
from lakewright_spark.maintenance.jobs.job import History
from lakewright_spark.maintenance.table.candidates import age_limit
from lakewright_spark.maintenance.table.expiration import (
    Ref,
    Snapshot,
    add_departures,
    find_departures,
    find_expirable_snapshots,
    find_expired_snapshots,
    plan_expiration,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.removed_refs import (
    REMOVED_REFS,
    find_expiration_obstacle,
    find_overdue_refs,
    read_removed_refs,
    record_removed_refs,
)
from lakewright_spark.policies.history_rules import HistoryRules, history_mistakes
from lakewright_spark.policies.model import HistoryPolicy, TablePolicies
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def days_ago(number: float) -> datetime:
    return NOW - timedelta(days=number)


LINE = [Snapshot(n, n - 1 or None, days_ago(10 - n)) for n in range(1, 6)]
"""Return snapshots 1 to 5, committed nine to five days ago in order."""
MAIN = Ref("main", "BRANCH", 5)


@pytest.mark.parametrize(
    ("refs", "older_than", "retain_last", "expirable"),
    [
        ([MAIN], 6.5, 1, {1, 2, 3}),
        ([MAIN], 0, 1, {1, 2, 3, 4}),
        ([MAIN], 0, 3, {1, 2}),
        ([MAIN], 20, 1, set()),
        ([MAIN, Ref("v1", "TAG", 2)], 0, 1, {1, 3, 4}),
        ([MAIN, Ref("work", "BRANCH", 3)], 0, 2, {1}),
        ([MAIN, Ref("work", "BRANCH", 3, min_snapshots=3)], 0, 1, {4}),
        ([MAIN, Ref("v1", "TAG", 2, max_age=timedelta(days=1))], 0, 1, {1, 2, 3, 4}),
        ([MAIN, Ref("work", "BRANCH", 3, max_snapshot_age=timedelta(days=30))], 0, 1, {4}),
    ],
)
def test_snapshots_without_branch_or_tag_expire(
    refs: list[Ref], older_than: float, retain_last: int, expirable: set[int]
) -> None:
    assert (
        find_expirable_snapshots(LINE, refs, older_than=days_ago(older_than), retain_last=retain_last, now=NOW)
        == expirable
    )


def test_unreferenced_snapshot_expires_by_age_alone() -> None:
    aside = Snapshot(9, 4, days_ago(1))
    assert 9 not in find_expirable_snapshots([*LINE, aside], [MAIN], older_than=days_ago(2), retain_last=1, now=NOW)
    assert 9 in find_expirable_snapshots([*LINE, aside], [MAIN], older_than=days_ago(0.5), retain_last=1, now=NOW)


DAY_MS = 24 * 60 * 60 * 1000
AGE, FEWEST, REF_AGE = (
    f"history.expire.{name}" for name in ("max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms")
)


@pytest.mark.parametrize(
    ("properties", "history", "expirable"),
    [
        ({}, None, {1, 2, 3, 4}),
        ({AGE: str(30 * DAY_MS)}, None, set()),
        ({AGE: str(30 * DAY_MS)}, {"max_age_days": 1, "versions": 2}, set()),
        ({AGE: str(2**63 - 1)}, {"versions": 2}, set()),
        ({AGE: str(DAY_MS)}, {"max_age_days": 30}, {1, 2, 3, 4}),
        ({FEWEST: "4"}, {"max_age_days": 1}, {1}),
        ({FEWEST: "4"}, {"max_age_days": 30, "versions": 2}, {1}),
        ({}, {"max_age_days": 30}, set()),
        ({}, {"max_age_days": 7}, {1, 2}),
        ({}, {"max_age_days": 30, "versions": 3}, {1, 2}),
    ],
)
def test_history_properties_override_the_policy(
    properties: dict[str, str], history: dict[str, int] | None, expirable: set[int]
) -> None:
    rules = HistoryRules.resolve(properties, HistoryPolicy.model_validate(history) if history else None)
    assert find_expired_snapshots(LINE, [MAIN], rules, NOW) == expirable


def test_removed_branch_keeps_its_last_snapshot_for_readers() -> None:
    """The branch is removed first, and its snapshot expires one longest run later. Other snapshots expire meanwhile."""
    work = Snapshot(9, 5, days_ago(4))
    snapshots, refs = [*LINE, work], [MAIN, Ref("work", "BRANCH", 9)]
    rules = HistoryRules.resolve({AGE: str(3 * DAY_MS), REF_AGE: str(2 * DAY_MS)}, None)
    assert find_overdue_refs(snapshots, refs, None, NOW) == []
    assert find_overdue_refs(snapshots, refs, rules.max_ref_age, NOW) == [refs[1]]
    assert find_expired_snapshots(snapshots, [MAIN], rules, NOW, {9: NOW}) == {1, 2, 3, 4}
    assert find_expired_snapshots(snapshots, [MAIN], rules, NOW + timedelta(hours=23), {9: NOW}) == {1, 2, 3, 4}
    assert find_expired_snapshots(snapshots, [MAIN], rules, NOW + timedelta(days=1), {9: NOW}) == {1, 2, 3, 4, 9}
    by_number = HistoryRules.resolve({}, HistoryPolicy(max_age_days=30, versions=2))
    assert find_expired_snapshots(snapshots, [MAIN], by_number, NOW, {9: NOW}) == {1, 2, 3}
    for step in plan_expiration(snapshots, [MAIN], rules, NOW, {9: NOW}):
        assert (step.is_explicit, step.older_than) == (True, days_ago(9)), "Iceberg must not expire snapshot 9 by age"


def test_refs_are_overdue_before_iceberg_removes_them() -> None:
    tag = Ref("v1", "TAG", 5, max_age=timedelta(days=5) + timedelta(minutes=10))
    assert find_overdue_refs(LINE, [MAIN, tag], timedelta(days=1), NOW) == [tag], "during the expiration, it would be"
    assert find_overdue_refs(LINE, [tag], None, NOW - timedelta(minutes=10)) == []


def test_table_of_overdue_refs_alone_is_not_expired() -> None:
    """Lakekeeper keeps the last branch or tag, and Iceberg would remove it together with its files."""
    tags = [Ref("old", "TAG", 1, max_age=timedelta(hours=1)), Ref("new", "TAG", 2, max_age=timedelta(hours=1))]
    assert find_overdue_refs(LINE, tags, None, NOW) == tags
    obstacle = find_expiration_obstacle(tags, tags)
    assert "no branch main, and each branch and tag is past its age: new, old." in (obstacle or "")
    assert find_expiration_obstacle([*tags, MAIN], tags) is None
    assert find_expiration_obstacle([], []) is None

    table = TableIdentifier("results", ("sales",), "orders")
    facts = TableFacts(
        table=table, uuid="u", properties={}, snapshots=tuple(LINE), refs=tuple(tags), snapshot=None, touched_at=NOW
    )
    assert snapshot_expiration.is_due(facts, TablePolicies(), History(), NOW) == (False, obstacle)
    assert snapshot_expiration.is_due(replace(facts, refs=(*tags, MAIN)), TablePolicies(), History(), NOW).is_due


def test_removed_refs_are_recorded() -> None:
    properties = {REMOVED_REFS: record_removed_refs({}, [Ref("v1", "TAG", 2)], LINE, NOW)}
    assert read_removed_refs(properties) == {2: NOW}
    later = NOW + timedelta(days=1)
    properties = {REMOVED_REFS: record_removed_refs(properties, [Ref("v2", "TAG", 5)], LINE[2:], later)}
    assert read_removed_refs(properties) == {5: later}, "snapshot 2 is expired"
    with pytest.raises(
        PolicyRefusedError, match=r"property lakewright.removed-refs: expected a JSON map .* found '\[\]'"
    ):
        read_removed_refs({REMOVED_REFS: "[]"})


def test_versions_spare_writes_staged_for_an_audit() -> None:
    staged = Snapshot(9, 4, days_ago(5.5), wap_id="audit")
    rolled_back = Snapshot(10, 4, days_ago(5.5))
    rules = HistoryRules.resolve({}, HistoryPolicy(max_age_days=30, versions=2))
    assert find_expired_snapshots([*LINE, staged, rolled_back], [MAIN], rules, NOW) == {1, 2, 3, 10}
    published = Snapshot(6, 5, days_ago(4), published_wap_id="audit")
    assert find_expired_snapshots([*LINE, staged, published], [Ref("main", "BRANCH", 6)], rules, NOW) == {1, 2, 3, 4, 9}
    by_age = HistoryRules.resolve({}, HistoryPolicy(max_age_days=5, versions=2))
    assert 9 in find_expired_snapshots([*LINE, staged], [MAIN], by_age, NOW), "it goes by its age"


def test_history_property_that_is_not_a_number() -> None:
    with pytest.raises(PolicyRefusedError, match=r"max-snapshot-age-ms: expected a whole number, found '30 days'"):
        HistoryRules.resolve({AGE: "30 days"}, None)


def test_policy_that_contradicts_properties_is_reported() -> None:
    both = HistoryPolicy(max_age_days=3, versions=2)
    (age,) = history_mistakes(both, {AGE: "1"})
    assert age.startswith("history: `max_age_days` and `versions` has no effect")
    (number,) = history_mistakes(both, {FEWEST: "5"})
    assert "declares `history.expire.min-snapshots-to-keep`" in number
    assert history_mistakes(both, {FEWEST: "2", "owner": "me"}) == []


HOURLY = [Snapshot(n, n - 1 or None, NOW - timedelta(hours=51 - n)) for n in range(1, 51)]
"""Snapshots 1 to 50, committed 50 hours to an hour ago in order."""


@pytest.mark.parametrize(
    ("history", "expired"),
    [
        ({"versions": 2}, range(1, 27)),
        ({"versions": 2, "longest_run_hours": 1}, range(1, 49)),
        ({"versions": 2, "longest_run_hours": 6}, range(1, 45)),
        ({"longest_run_hours": 6}, range(0)),
    ],
)
def test_snapshots_that_readers_may_have_open_are_kept(history: dict[str, int], expired: range) -> None:
    """Snapshot 27 replaced 26 exactly 24 hours ago. Readers of the last day have opened 27 or later snapshots."""
    rules = HistoryRules.resolve({}, HistoryPolicy.model_validate(history))
    assert find_expired_snapshots(HOURLY, [Ref("main", "BRANCH", 50)], rules, NOW) == set(expired)


def test_old_snapshot_that_was_just_replaced_is_kept() -> None:
    """Its age says nothing about its readers, who may have opened it a minute ago."""
    replaced = [*LINE, Snapshot(6, 5, days_ago(0.5))]
    rules = HistoryRules.resolve({AGE: str(DAY_MS)}, None)
    assert find_expired_snapshots(replaced, [Ref("main", "BRANCH", 6)], rules, NOW) == {1, 2, 3, 4}
    assert find_departures([(1, 1000), (5, 2000), (3, 3000)])[5] == datetime.fromtimestamp(3, UTC)
    rolled_back = [*LINE[:4], Snapshot(5, 4, days_ago(5), left_main_at=days_ago(0.5))]
    assert find_expired_snapshots(rolled_back, [Ref("main", "BRANCH", 3)], rules, NOW) == {1, 2, 4}
    rolled_back_earlier = [*LINE[:4], Snapshot(5, 4, days_ago(5), left_main_at=days_ago(1.5))]
    assert find_expired_snapshots(rolled_back_earlier, [Ref("main", "BRANCH", 3)], rules, NOW) == {1, 2, 4, 5}


def test_snapshots_before_a_replacement_of_the_table_are_kept() -> None:
    """The first snapshot after a replacement has no parent, and a server may have cleared the log."""
    rules = HistoryRules.resolve({}, None)
    before, minute = Snapshot(1, None, days_ago(6)), timedelta(minutes=1)
    after, main = Snapshot(2, None, NOW - minute), [Ref("main", "BRANCH", 2)]
    assert find_expired_snapshots([before, after], main, rules, NOW) == set()
    assert find_expired_snapshots([before, after], main, rules, NOW + rules.longest_run - 2 * minute) == set()
    assert find_expired_snapshots([before, after], main, rules, NOW + rules.longest_run) == {1}
    assert find_expired_snapshots([before, after, Snapshot(3, 2, NOW)], [Ref("main", "BRANCH", 3)], rules, NOW) == set()
    line = [*LINE, Snapshot(9, 3, days_ago(6.5)), Snapshot(10, None, NOW - minute)]
    assert find_expired_snapshots(line, [Ref("main", "BRANCH", 10)], rules, NOW) == set()


def test_table_that_is_replaced_every_hour_keeps_a_day() -> None:
    hourly = [Snapshot(n, None, NOW - timedelta(hours=51 - n)) for n in range(1, 51)]
    rules = HistoryRules.resolve({}, HistoryPolicy(versions=2))
    assert find_expired_snapshots(hourly, [Ref("main", "BRANCH", 50)], rules, NOW) == set(range(1, 27))


def test_snapshots_of_an_emptied_table_are_kept() -> None:
    """`CREATE OR REPLACE TABLE` without rows leaves no current snapshot."""
    departures = find_departures([], emptied=[1, 2], emptied_at=1000)
    assert departures == dict.fromkeys([1, 2], datetime.fromtimestamp(1, UTC))
    assert find_departures([(1, 500), (2, 800)], emptied=[1, 2], emptied_at=1000)[1] == datetime.fromtimestamp(0.8, UTC)
    rules = HistoryRules.resolve({}, None)
    emptied = [Snapshot(1, None, days_ago(6), left_main_at=days_ago(0.5))]
    assert find_expired_snapshots(emptied, [], rules, NOW) == set()
    assert find_expired_snapshots(emptied, [], rules, NOW + timedelta(days=1)) == {1}


def test_written_table_without_main_expires_snapshots() -> None:
    """A writer of a branch and of staged writes changes the table each hour. Its snapshots never were on `main`."""
    branch = Ref("work", "BRANCH", 3)
    undone = Snapshot(4, 2, days_ago(6))
    staged = Snapshot(5, 2, days_ago(6), wap_id="audit")
    updated_at = int(days_ago(0).timestamp() * 1000)
    snapshots = add_departures([*LINE[:3], undone, staged], [branch], [], updated_at)
    assert [snapshot.id for snapshot in snapshots if snapshot.left_main_at is not None] == [4]
    snapshots = [snapshot for snapshot in snapshots if snapshot.id != undone.id]
    assert find_expired_snapshots(snapshots, [branch], HistoryRules.resolve({}, None), NOW) == {1, 2, 5}


def test_orphans_are_older_than_the_longest_write() -> None:
    """A write of 60 hours loses no file that it has not committed yet."""
    policies = TablePolicies.model_validate(
        {"history": {"longest_run_hours": 72}, "orphan_files": {"older_than_days": 1}}
    )
    assert age_limit(policies, NOW) == days_ago(3)
    assert age_limit(TablePolicies(), NOW) == days_ago(7)


def test_versions_keep_the_last_batch_of_a_stream() -> None:
    """The query finds it by the parents of the current snapshot after a crash, so none of them expires by number."""
    now = NOW - timedelta(days=4.5)  # snapshots of four and a half days
    line = [replace(one, stream_query={1: "a", 2: "b", 3: "b"}.get(one.id)) for one in LINE]
    by_number = HistoryRules.resolve({}, HistoryPolicy(max_age_days=8, versions=2))
    assert find_expired_snapshots(LINE, [MAIN], by_number, now) == {1, 2, 3}
    assert find_expired_snapshots(line[1:], [MAIN], by_number, now) == {2}
    assert find_expired_snapshots(line, [MAIN], by_number, now) == set()
    assert find_expired_snapshots(line, [MAIN], by_number, now + timedelta(days=1)) == {1, 2}, "query a has ended"
    streamed_snapshot = Snapshot.from_fields(1, None, 0, {"spark.sql.streaming.queryId": "q"})
    assert streamed_snapshot.stream_query == "q"
