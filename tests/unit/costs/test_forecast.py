"""The day on which a limit is reached, by the trend of the last thirty days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from lakewright.costs.cost_report import CostReport, Grouping
from lakewright.costs.forecast import LimitForecast, forecast_limits
from lakewright.costs.usage_days import list_days
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport

FIRST = date(2026, 9, 1)
ACME = SelectedStack("acme", {"name": "acme"})


def build_report(amount: Callable[[int], int], days: int, limits: dict[str, Any]) -> SparkReport:
    """Return a report in which warehouse `a` has an amount of bytes and files by the number of the day."""
    rows = [
        {
            "day": f"{FIRST + timedelta(days=number):%F}",
            "warehouse": warehouse,
            "tables": 1,
            "files": size,
            "bytes_live": size,
            "bytes_reclaimable": 0,
        }
        for number in range(days)
        for warehouse, size in (("a", amount(number)), ("b", 50))
    ]
    return SparkReport(ACME, {"days": rows, "limits": limits, "warehouses": ["a", "b"]})


def forecast(amount: Callable[[int], int], days: int, limits: dict[str, Any]) -> list[LimitForecast]:
    report = build_report(amount, days, limits)
    return forecast_limits([report], list_days([report]))


def test_limits_of_tenant_and_warehouse_have_their_own_days() -> None:
    limits = {"tenant": {"bytes": 1000, "tables": 5}, "warehouses": {"a": {"files": 400, "bytes": 100}, "b": {}}}
    forecasts = forecast(lambda number: 10 * number, 31, limits)
    assert [(entry.warehouse, entry.quantity, entry.used, entry.reached_on) for entry in forecasts] == [
        (None, "bytes", 350, FIRST + timedelta(days=30 + 65)),
        (None, "tables", 2, None),
        ("a", "bytes", 300, FIRST + timedelta(days=30)),
        ("a", "files", 300, FIRST + timedelta(days=30 + 10)),
    ]


@pytest.mark.parametrize(
    ("amount", "limit", "reached_on"),
    [
        pytest.param(lambda _: 50, 1000, None, id="constant"),
        pytest.param(lambda number: 500 - number, 1000, None, id="shrinks"),
        pytest.param(
            lambda number: 5 * max(number - 60, 0), 1000, FIRST + timedelta(days=90 + 170), id="recent growth"
        ),
        pytest.param(lambda number: number, 10_000, None, id="more than ten years"),
    ],
)
def test_trend_of_the_last_thirty_days(amount: Callable[[int], int], limit: int, reached_on: date | None) -> None:
    (entry,) = forecast(amount, 91, {"warehouses": {"a": {"files": limit}}})
    assert entry.reached_on == reached_on


def test_a_single_day_has_no_trend() -> None:
    (entry,) = forecast(lambda _: 10, 1, {"tenant": {"files": 100}})
    assert (entry.used, entry.per_day, entry.reached_on) == (60, 0, None)


def test_lines_say_when() -> None:
    limits = {"warehouses": {"a": {"files": 400, "bytes": 300, "tables": 9}}}
    lines = CostReport([build_report(lambda number: 10 * number, 31, limits)], Grouping("month"), None).format_lines()
    assert [line.split("  ")[-1].strip() for line in lines[-3:]] == ["reached", "2026-10-11", "not by the trend"]


def test_limit_of_a_namespace_counts_its_own_amounts() -> None:
    """Rows before the limit was declared have no amounts of the namespace."""
    limits = {"warehouses": {"a": {"namespaces": {"sales": {"bytes": 100, "tables": 3}}}}}
    report = build_report(lambda number: 10 * number, 31, limits)
    for number, row in enumerate(row for row in report.report["days"] if row["warehouse"] == "a"):
        if number >= 20:
            row["limited_namespaces"] = {"sales": {"bytes": 2 * number, "files": 1, "tables": 1}}
    forecasts = forecast_limits([report], list_days([report]))
    assert [
        (entry.warehouse, entry.namespace, entry.quantity, entry.used, entry.reached_on) for entry in forecasts
    ] == [
        ("a", "sales", "bytes", 60, FIRST + timedelta(days=30 + 20)),
        ("a", "sales", "tables", 1, None),
    ]
    lines = CostReport([report], Grouping("month"), None).format_lines()
    assert " a.sales " in lines[-1]


@pytest.mark.parametrize(
    ("last_day", "limit", "used", "reached_on"),
    [
        pytest.param(20, 60, 40, date(2026, 9, 30), id="in this month"),
        pytest.param(20, 61, 40, None, id="the month ends before"),
        pytest.param(20, 40, 40, date(2026, 9, 20), id="reached"),
        pytest.param(40, 30, 20, date(2026, 10, 15), id="hours of the last month do not count"),
    ],
)
def test_limit_of_compute_ends_with_the_month(last_day: int, limit: int, used: int, reached_on: date | None) -> None:
    """Each of two warehouses has an hour of computing units a day."""
    report = build_report(lambda _: 10, last_day, {"tenant": {"compute": limit}})
    for row in report.report["days"]:
        row["cu_hours"] = 1.0
    (entry,) = forecast_limits([report], list_days([report]))
    assert (entry.quantity, entry.used, entry.per_day, entry.reached_on) == ("compute", used, 2, reached_on)


def test_incomplete_month_has_no_forecast_of_compute() -> None:
    report = build_report(lambda _: 10, 20, {"tenant": {"compute": 60}})
    for row in report.report["days"]:
        row["cu_hours"] = 1.0
    assert len(forecast_limits([report], list_days([report]))) == 1
    later = SparkReport(ACME, {**report.report, "since": "2026-09-02"})
    assert forecast_limits([later], list_days([later])) == []


def test_limit_of_compute_without_recorded_hours_has_no_forecast() -> None:
    assert forecast(lambda _: 10, 20, {"tenant": {"compute": 60}, "warehouses": {"a": {"compute": 60}}}) == []


def test_limits_do_not_count_archived_warehouses() -> None:
    """The stack no longer has warehouse `b`, whose rows remain in the report."""
    report = build_report(lambda number: 10 * number, 31, {"tenant": {"bytes": 1000, "tables": 5, "compute": 900}})
    for row in report.report["days"]:
        row["cu_hours"] = 1.0
    deployed = SparkReport(ACME, {**report.report, "warehouses": ["a"]})
    forecasts = forecast_limits([deployed], list_days([deployed]))
    assert [(entry.quantity, entry.used) for entry in forecasts] == [("bytes", 300), ("tables", 1), ("compute", 1)]
