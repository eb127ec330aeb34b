"""A Spark job that ends by itself: at its deadline its session is stopped, whatever it is at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakewright_spark.errors import DeadlineError


@contextmanager
def ending(spark: SparkSession, deadline: datetime | None, what: str) -> Iterator[None]:
    """Stop the session at that instant. DeadlineError if `what` had not ended by then; nothing of it is half done."""
    if deadline is None:
        yield
        return
    passed = threading.Event()

    def stop() -> None:
        passed.set()
        spark.stop()

    timer = threading.Timer(max((deadline - datetime.now(UTC)).total_seconds(), 0.0), stop)
    timer.start()
    try:
        yield
    except Exception as error:
        # A session that is no more is told in many ways, by assertions, too.
        if passed.is_set():
            raise DeadlineError(f"{what} was ended at its deadline, {deadline:%Y-%m-%d %H:%M:%S} UTC") from error
        raise
    finally:
        timer.cancel()
