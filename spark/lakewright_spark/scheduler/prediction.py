"""Predicted gain and cost of jobs: files saved, bytes rewritten, seconds, and GB-hours. Pure functions.

The measure is that of OpenHouse's AutoComp: files saved per GB-hour of compute (`reducedFileCountPerComputeGbHr` of
OpenHouseDataLayoutStrategyGenerator, openhouse commit 47690701). OpenHouse adds 0.5 GB-hours for the start of an
application to each table. Here all tables share an application, so a job has a small fixed cost instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakewright_spark.maintenance.jobs.compaction import BYTES_PER_SECOND
from lakewright_spark.maintenance.jobs.job import Effect, History
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import JobName, TablePolicies

MEMORY_GB = 2
"""Memory that a job's seconds are multiplied with: OpenHouse's `EXECUTOR_MEMORY_GB`."""
FIXED_SECONDS = 1.0
"""Seconds of a job that finds nothing to do."""
SECONDS_PER_FILE = 0.05
"""Seconds that a file to rewrite takes, whatever its size. It is an assumption: before the first run on a table, the
speed of the machine is unknown. Later predictions are scaled from the last run."""


@dataclass(frozen=True)
class Prediction:
    """Predicted effect and duration of one or more jobs."""

    files: int = 0
    """Files that the table has fewer afterwards."""
    bytes: int = 0
    """Bytes to rewrite."""
    seconds: float = 0.0

    @property
    def gb_hours(self) -> float:
        """Return the cost."""
        return compute_gb_hours(self.seconds)

    @property
    def score(self) -> float:
        """Return the files saved per GB-hour."""
        return self.files / self.gb_hours if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the prediction for JSON."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 1),
            "gb_hours": round(self.gb_hours, 6),
        }


def compute_gb_hours(seconds: float) -> float:
    """Return the cost of a job of this duration."""
    return seconds / 3600 * MEMORY_GB


def estimate_seconds(effect: Effect) -> float:
    """Return the seconds of a job with this effect, on a table without earlier runs."""
    return FIXED_SECONDS + effect.rewritten * SECONDS_PER_FILE + effect.bytes / BYTES_PER_SECOND


def predict_job(job: JobName, facts: TableFacts, policies: TablePolicies, history: History) -> Prediction:
    """Return the prediction for a job. The duration of the last successful run, if any, is scaled to the work."""
    rule = JOBS_BY_NAME[job].predict
    effect = rule(facts, policies, history) if rule else Effect()
    seconds = history.seconds.get(job)
    if seconds is None:
        seconds = estimate_seconds(effect)
    elif (last := history.effects.get(job)) is not None:
        seconds *= estimate_seconds(effect) / estimate_seconds(last)
    return Prediction(effect.files, effect.bytes, max(seconds, FIXED_SECONDS))


def add_predictions(predictions: Iterable[Prediction]) -> Prediction:
    """Return the prediction for several jobs together."""
    total = Prediction()
    for one in predictions:
        total = Prediction(total.files + one.files, total.bytes + one.bytes, total.seconds + one.seconds)
    return total
