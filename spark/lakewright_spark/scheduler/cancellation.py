"""Cancellation of a run's Spark jobs: all of them, or only the Spark jobs that the run begins from now on."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_PAUSE = 0.1
"""Seconds between two cancellations of the Spark jobs of an abandoned worker."""


class WindDown:
    """Lets the present Spark jobs of a run end, and cancels the Spark jobs that the run begins later.

    Iceberg rewrites each group of files in Spark jobs of its own. It begins the next group if a group fails, and
    commits the groups that did not fail.
    """

    def __init__(self, spark: SparkSession, tag: str) -> None:
        """Note the present Spark jobs that have the tag of the run."""
        self._context, self._tag = spark.sparkContext, tag
        self._handled_jobs = self._list_jobs()

    def cancel_new_jobs(self) -> None:
        """Cancel the Spark jobs that began since the last call."""
        new_jobs = self._list_jobs() - self._handled_jobs
        self._handled_jobs |= new_jobs
        for job in new_jobs:
            with suppress(Py4JError, ConnectionError):  # the run ends with the JVM
                self._scala_context.cancelJob(job)

    @property
    def _scala_context(self) -> Any:
        context: Any = self._context
        return context._jsc.sc()

    def _list_jobs(self) -> set[int]:
        try:
            return set(self._scala_context.statusTracker().getJobIdsForTag(self._tag))
        except (Py4JError, ConnectionError):
            return set()


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the present Spark jobs of a run. Repeat it until the run ends, which may begin further Spark jobs."""
    with suppress(Py4JError, ConnectionError):  # the run ends with the JVM
        spark.sparkContext.cancelJobsWithTag(tag)


def keep_cancelling(spark: SparkSession, tag: str, ended: threading.Event) -> None:
    """Cancel the Spark jobs of a run in a thread of its own, until the run ends or Spark ends."""

    def cancel() -> None:
        while not ended.wait(_PAUSE):
            try:
                spark.sparkContext.cancelJobsWithTag(tag)
            except (Py4JError, ConnectionError, AttributeError):  # a stopped session has no JVM
                return

    threading.Thread(target=cancel, name=f"cancel {tag}", daemon=True).start()
