"""How often a stream commits as it gets older."""

from __future__ import annotations

from lakewright_spark.results.writer import EVERY_BATCH, CommitInterval

DAY_SECONDS = 24 * 60 * 60


def test_stream_of_a_day_makes_few_commits() -> None:
    """A row arrives each second; the first of them starts the timer."""
    interval, commits, age = CommitInterval(), list[float](), 0.0
    while age < DAY_SECONDS:
        age += interval.seconds_at_age(age) or 0
        commits.append(age)
    assert 400 < len(commits) <= 500, "every five seconds would make 17,280"
    assert commits[:3] == [5, 10, 15], "a reader sees the first rows soon"
    assert commits[-1] - commits[-2] == 300


def test_interval_without_seconds() -> None:
    assert EVERY_BATCH.seconds_at_age(DAY_SECONDS) is None
    assert (
        CommitInterval(seconds=900).seconds_at_age(0) == CommitInterval(seconds=900).seconds_at_age(DAY_SECONDS) == 900
    )
