"""Time until a failed job is tried again. Pure functions."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakewright_spark.maintenance.jobs.job import Failures
from lakewright_spark.times import format_time

SHORTEST, LONGEST = timedelta(hours=1), timedelta(days=7)
"""Time after the first failure, and the most. OpenHouse's optimizer also waits an hour after a failure."""
_DOUBLINGS = 8
"""Doublings from the shortest to more than the longest time."""
_DOUBLINGS_OF_KILLS = 4
"""Further doublings for a job that killed its runner: 16 hours after its second death, since it has to run alone."""


def compute_delay(failures: Failures) -> timedelta:
    """Return the time to wait after the last failure: an hour, doubled by each further failure, at most seven days.

    The first run that killed its runner does not count: other tables were in work then, and any of them may be the
    cause. After the second, the job waits for 16 hours.

    >>> now = datetime(2026, 1, 1)
    >>> [str(compute_delay(Failures(count, now))) for count in (1, 2, 9)]
    ['1:00:00', '2:00:00', '7 days, 0:00:00']
    >>> str(compute_delay(Failures(1, now, kills=1)))
    '0:00:00'
    """
    if failures.proven == 0:
        return timedelta()
    doublings = failures.proven - 1 + (_DOUBLINGS_OF_KILLS if failures.kills > 1 else 0)
    return min(SHORTEST * 2 ** min(doublings, _DOUBLINGS), LONGEST)


def reason_to_back_off(failures: Failures | None, now: datetime) -> str | None:
    """Return why a job waits after failures; None if it may run."""
    if failures is None or now >= (next_attempt := failures.last + compute_delay(failures)):
        return None
    times = "once" if failures.count == 1 else f"{failures.count} times in a row"
    return f"failed {times}, last {format_time(failures.last)}; the next attempt is after {format_time(next_attempt)}"
