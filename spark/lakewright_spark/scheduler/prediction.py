"""Predicted gain and cost of jobs: files saved, bytes rewritten, seconds, and GB-hours. Pure functions.

The measure is that of OpenHouse's AutoComp: files saved per GB-hour of compute (`reducedFileCountPerComputeGbHr` of
OpenHouseDataLayoutStrategyGenerator, openhouse commit 47690701). OpenHouse adds 0.5 GB-hours for the start of an
application to each table. Here all tables share an application, so a job has a small fixed cost instead.

The seconds come from the last run of the job on the table, scaled to the work. Before the first run, they come from the
last runs of the job on all other tables of the warehouse, and before these from the speed of a machine with two cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from lakewright_spark.maintenance.jobs.job import Effect, History
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import JobName, TablePolicies

MEMORY_GB = 2
"""Memory that a job's seconds are multiplied with: OpenHouse's `EXECUTOR_MEMORY_GB`."""
FIXED_SECONDS = 1.0
"""Seconds of a job that finds nothing to do."""
SECONDS_PER_FILE = 0.1
"""Seconds that a file to rewrite takes, whatever its size."""
BYTES_PER_SECOND = 8 * 2**20
"""Bytes that are rewritten in a second. Both rates were measured with TPC-H on two cores (`benchmarks tpch_care`).
Quiet cores are up to twice as fast, and cores with a load of 10 half as fast."""
MIN_SECONDS = 0.1
"""Shortest predicted duration: it divides the files saved."""

Pace = Mapping[JobName, float]
"""By job, the seconds of runs as a multiple of the seconds that `estimate_seconds` returns."""
NO_PACE: Pace = {}


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
    """Return the seconds of a job with this effect, in a warehouse without earlier runs."""
    return FIXED_SECONDS + effect.rewritten * SECONDS_PER_FILE + effect.bytes / BYTES_PER_SECOND


def measure_pace(histories: Iterable[History]) -> Pace:
    """Return the pace of each job in a warehouse: the median of the last successful runs on its tables."""
    paces: defaultdict[JobName, list[float]] = defaultdict(list)
    for history in histories:
        for job in history.seconds:
            if (pace := _find_pace(job, history)) is not None:
                paces[job].append(pace)
    return {job: median(values) for job, values in paces.items()}


def predict_job(
    job: JobName, facts: TableFacts, policies: TablePolicies, history: History, pace: Pace = NO_PACE
) -> Prediction:
    """Return the prediction for a job.

    Args:
        job: Name of the job.
        facts: Metadata of the table.
        policies: Policies of the table.
        history: Earlier runs on the table. The last successful run of the job, if any, is scaled to the work.
        pace: Pace of the warehouse, for a job without such a run.
    """
    rule = JOBS_BY_NAME[job].predict
    effect = rule(facts, policies, history) if rule else Effect()
    own_pace = _find_pace(job, history)
    if own_pace is None and rule and job in history.seconds and job not in history.effects:
        seconds = history.seconds[job]  # its effect was too long ago
    else:
        seconds = estimate_seconds(effect) * (pace.get(job, 1.0) if own_pace is None else own_pace)
    return Prediction(effect.files, effect.bytes, max(seconds, MIN_SECONDS))


def _find_pace(job: JobName, history: History) -> float | None:
    """Return the pace of the last successful run of a job on a table.

    Returns:
        None: There is no run, its effect is not known, or it found nothing to rewrite, so it shows no pace of rewrites.
    """
    seconds = history.seconds.get(job)
    if JOBS_BY_NAME[job].predict is None:
        return seconds
    effect = history.effects.get(job)
    if seconds is None or effect is None or not effect.rewritten:
        return None
    return seconds / estimate_seconds(effect)


def add_predictions(predictions: Iterable[Prediction]) -> Prediction:
    """Return the prediction for several jobs together."""
    total = Prediction()
    for one in predictions:
        total = Prediction(total.files + one.files, total.bytes + one.bytes, total.seconds + one.seconds)
    return total
