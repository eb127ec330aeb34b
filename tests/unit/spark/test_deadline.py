"""A session is stopped at its job's deadline, and that is what the job is told to have ended by."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from lakewright_spark.deadline import ending
from lakewright_spark.errors import DeadlineError, JobFailedError


class Session:
    """Of a session, what ends it."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()


def within(session: Session, deadline: datetime | None) -> Any:
    return ending(cast(Any, session), deadline, "compaction of w.n.t")


def test_a_job_that_is_at_work_then_ends() -> None:
    session = Session()

    def work() -> None:
        with within(session, datetime.now(UTC) + timedelta(seconds=0.05)):
            session.stopped.wait()
            raise AssertionError  # as PySpark does without a session

    with pytest.raises(DeadlineError, match=r"compaction of w\.n\.t was ended at its deadline"):
        work()


def test_one_that_ends_before_it_is_left_alone() -> None:
    session = Session()
    with within(session, datetime.now(UTC) + timedelta(hours=1)):
        pass
    with within(session, None):
        pass
    assert not session.stopped.is_set()


def test_another_failure_is_what_it_is() -> None:
    with pytest.raises(JobFailedError), within(Session(), datetime.now(UTC) + timedelta(hours=1)):
        raise JobFailedError("the store is full")
