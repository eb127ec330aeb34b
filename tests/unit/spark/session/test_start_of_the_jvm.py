"""The start of Spark's JVM, which gRPC's threads of this process may end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lakewright_spark.session import builder
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError


def fail_first(failures: int, calls: list[Any], condition: str = "JAVA_GATEWAY_EXITED") -> Callable[..., None]:
    """Return a start that fails this number of times."""

    def start(**options: Any) -> None:
        calls.append(options)
        if len(calls) <= failures:
            raise PySparkRuntimeError(errorClass=condition, messageParameters={})

    return start


def test_jvm_is_started_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(SparkContext, "_ensure_initialized", fail_first(1, calls))
    builder._start_jvm({"spark.app.name": "again"})
    assert [options["conf"].get("spark.app.name") for options in calls] == ["again", "again"]


@pytest.mark.parametrize(("condition", "starts"), [("JAVA_GATEWAY_EXITED", 2), ("MASTER_URL_NOT_SET", 1)])
def test_failure_is_reported(monkeypatch: pytest.MonkeyPatch, condition: str, starts: int) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(SparkContext, "_ensure_initialized", fail_first(9, calls, condition))
    with pytest.raises(PySparkRuntimeError):
        builder._start_jvm({})
    assert len(calls) == starts
