"""The start of Spark's JVM, which gRPC's threads of this process may end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import JobFailedError
from lakewright_spark.session import builder
from lakewright_spark.session.builder import Workload
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


@pytest.mark.parametrize(
    ("workload", "fixed_options"),
    [(Workload.MAINTENANCE, " -XX:+ExitOnOutOfMemoryError"), (Workload.SCRIPT, "")],
)
def test_user_options_keep_the_end_without_memory(
    workload: Workload, fixed_options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CatalogConfig(
        tenant="acme", kind="rest", uri="https://c.example", warehouses=[CatalogWarehouse(name="raw")]
    )
    calls: list[Any] = []
    monkeypatch.setattr(SparkContext, "_ensure_initialized", fail_first(9, calls))
    properties = {"spark.driver.extraJavaOptions": "-Dlog.level=debug"}

    with pytest.raises(JobFailedError):
        builder.spark_session(config, "maintenance", properties=properties, workload=workload)

    assert calls[0]["conf"].get("spark.driver.extraJavaOptions") == f"-Dlog.level=debug{fixed_options}"
