"""Which snapshots an expiration takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.maintenance.expirable import Ref, Snapshot, expirable

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def days_ago(number: float) -> datetime:
    return NOW - timedelta(days=number)


LINE = [Snapshot(n, n - 1 or None, days_ago(10 - n)) for n in range(1, 6)]
"""1 to 5, committed nine to five days ago, each after the other."""
MAIN = Ref("main", "BRANCH", 5)


@pytest.mark.parametrize(
    ("refs", "older_than", "retain_last", "gone"),
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
def test_what_no_branch_keeps_and_no_tag_names_goes(
    refs: list[Ref], older_than: float, retain_last: int, gone: set[int]
) -> None:
    assert expirable(LINE, refs, older_than=days_ago(older_than), retain_last=retain_last, now=NOW) == gone


def test_a_snapshot_that_nothing_leads_to_goes_by_its_age_alone() -> None:
    aside = Snapshot(9, 4, days_ago(1))
    assert 9 not in expirable([*LINE, aside], [MAIN], older_than=days_ago(2), retain_last=1, now=NOW)
    assert 9 in expirable([*LINE, aside], [MAIN], older_than=days_ago(0.5), retain_last=1, now=NOW)
