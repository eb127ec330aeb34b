"""Commits that earlier runs recorded: by time, and by ID where clocks may differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.maintenance.table.expiration import Snapshot
from lakewright_spark.maintenance.table.recorded_commits import RecordedCommits

NEWEST = datetime(2026, 1, 10, tzinfo=UTC)
RECORDED = RecordedCommits({"u": NEWEST}, {"u": frozenset({7, 8})})


@pytest.mark.parametrize(
    ("uuid", "number", "minutes", "is_recorded"),
    [
        ("u", 8, 0, True),
        ("u", 7, -1, True),
        ("u", 9, -1, False),
        ("u", 1, -3, True),
        ("u", 10, 1, False),
        ("other", 8, 0, False),
    ],
)
def test_recorded_commits(uuid: str, number: int, minutes: int, *, is_recorded: bool) -> None:
    """Snapshot 9 was committed after 8 by a writer whose clock is a minute late."""
    snapshot = Snapshot(number, None, NEWEST + timedelta(minutes=minutes))
    assert RECORDED.has_commit(uuid, snapshot) is is_recorded
