"""Order of the tables of a run: by waiting time, then by weighted gain per cost; tables that kill runners last.

A table that a night did not reach waits a day longer than other tables the next night, so it comes before them. If the
nights have time for a fraction f of the work, each table is maintained at least every 1/f nights, rounded up. Pure
functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import ByteSize, TypeAdapter

from lakewright_spark.maintenance.jobs.job import History
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.scheduler.health import Health
from lakewright_spark.scheduler.prediction import Prediction

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Rank:
    """Values of a table's due jobs that decide its turn."""

    waiting_since: datetime = _NEVER
    """When the first of the due jobs should have run (UTC)."""
    kills: int = 0
    """Runs on the table that killed their runner since its jobs last succeeded."""
    prediction: Prediction = field(default_factory=Prediction)
    delete_files: int = 0
    """Delete files that a due compaction may remove."""
    health: Health = field(default_factory=Health)
    weight: float = 1.0
    """Weight by the table's policy."""

    @property
    def gain(self) -> float:
        """Return the files that readers no longer open, weighted by what files of the table cost its readers."""
        return (self.prediction.files + self.delete_files) * self.health.factor * self.weight

    @property
    def score(self) -> float:
        """Return the gain per GB-hour."""
        return self.gain / self.prediction.gb_hours if self.prediction.seconds else 0.0

    @property
    def runs_alone(self) -> bool:
        """Return whether the table kills runners, so that no other table is in work at the same time."""
        return self.kills > 1

    @property
    def is_suspect(self) -> bool:
        """Return whether the table was in work when a runner died, beside other tables that may be the cause."""
        return self.kills == 1

    def count_days(self, now: datetime) -> int:
        """Return the complete days that the table has waited."""
        return max(0, (now - self.waiting_since) // timedelta(days=1))


def compute_waiting_since(
    facts: TableFacts, jobs: Iterable[JobName], policies: TablePolicies, history: History
) -> datetime:
    """Return when the first of the jobs should have run (UTC).

    A failed attempt counts as a turn, or tables that always fail would come first every night. A job that never ran
    waits since the oldest known snapshot of the table, or since it was first due, whichever is earlier.
    """
    oldest = min((snapshot.committed_at for snapshot in facts.snapshots), default=facts.touched_at)
    oldest = min(oldest, history.first_due or oldest)

    def compute(job: JobName) -> datetime:
        last = history.last_attempt(job)
        return oldest if last is None else last + (policies.every(job) or JOBS_BY_NAME[job].every)

    return min((compute(job) for job in jobs), default=facts.touched_at)


def rank_key(rank: Rank, now: datetime) -> tuple[int, int, float, float]:
    """Return the sort key: tables that kill runners last, then by days of waiting, then by gain per GB-hour.

    Tables without a gain, such as tables that only expire snapshots, come by their weight.
    """
    return rank.kills if rank.runs_alone else 0, -rank.count_days(now), -rank.score, -rank.weight


@dataclass(frozen=True)
class Budget:
    """Most work of a run: bytes to rewrite, or seconds of jobs."""

    bytes: int | None = None
    seconds: float | None = None

    def allows(self, prediction: Prediction) -> bool:
        """Return whether the work fits."""
        if self.bytes is not None and prediction.bytes > self.bytes:
            return False
        return self.seconds is None or prediction.seconds <= self.seconds


_BYTES = TypeAdapter(ByteSize)
_MINUTES = re.compile(r"(\d{1,6})([mh])")


def parse_budget(text: str) -> Budget:
    """Return the budget of a text: bytes such as `500GiB`, or the sum of the jobs' times such as `90m` or `8h`.

    Raises ValueError.

    >>> parse_budget("90m")
    Budget(bytes=None, seconds=5400.0)
    >>> parse_budget("1GiB")
    Budget(bytes=1073741824, seconds=None)
    """
    if match := _MINUTES.fullmatch(text):
        seconds = int(match[1]) * (60.0 if match[2] == "m" else 3600.0)
        if seconds:
            return Budget(seconds=seconds)
    elif re.fullmatch(r"\d+(\.\d+)?\s*[KMGTP]i?B", text, re.IGNORECASE) and (size := int(_BYTES.validate_python(text))):
        return Budget(bytes=size)
    raise ValueError(f"expected bytes such as 500GiB, or minutes such as 90m, found {text!r}")


def select_within(budget: Budget | None, ranks: Sequence[Rank]) -> list[bool]:
    """Return for each table, in order, whether its jobs fit into the budget together with those before it.

    A table that does not fit is left out, and smaller tables after it may fit. It waits longer than they do, so it
    becomes the first table, which always fits.
    """
    total = Prediction()
    selected: list[bool] = []
    for number, rank in enumerate(ranks):
        one = rank.prediction
        more = Prediction(total.files + one.files, total.bytes + one.bytes, total.seconds + one.seconds)
        fits = budget is None or number == 0 or budget.allows(more)
        selected.append(fits)
        total = more if fits else total
    return selected
