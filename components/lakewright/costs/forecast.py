"""Forecasts: the day on which a tenant, warehouse or namespace reaches a limit, by the trend of thirty days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

from lakewright.costs.usage_days import UsageDay
from lakewright.fleet.spark_reports import SparkReport
from lakewright.validation.documents import as_list, as_mapping, as_text

TREND_DAYS = 30
"""Days before the last row that the trend takes."""
_MAX_DAYS = 3650
"""A limit that is further away has no forecast."""
QUANTITIES = ("bytes", "files", "tables")
COMPUTE = "compute"


@dataclass(frozen=True)
class LimitForecast:
    """When a limit is reached, by the trend."""

    stack: str
    warehouse: str | None
    """Name of the warehouse; None for a limit of the tenant."""
    namespace: str | None
    quantity: str
    limit: int
    used: int
    """Usage on the last day; for compute, whole hours in its month."""
    per_day: Fraction
    """Growth per day by the least-squares line; 0 with a single day. For compute, mean hours of a day."""
    reached_on: date | None
    """Day of the last row if the limit is reached already. None if usage does not grow or grows for ten more years, and
    for compute if the month ends before."""


@dataclass(frozen=True)
class _LimitedPart:
    """A tenant, a warehouse or a namespace with limits."""

    stack: str
    warehouse: str | None
    namespace: str | None
    limits: Mapping[str, Any]
    """Limits by quantity."""

    def includes(self, row: UsageDay) -> bool:
        """Return whether the limits count a row."""
        return self.warehouse in (None, row.warehouse) and (self.namespace is None or self.namespace in row.namespaces)

    def read_amount(self, row: UsageDay, quantity: str) -> int:
        """Return the amount that a limit counts, as `usage` does: live and reclaimable bytes, live files, tables."""
        if self.namespace is not None:
            return row.namespaces[self.namespace].get(quantity, 0)
        if quantity == "bytes":
            return (row.stored.get("live") or 0) + (row.stored.get("reclaimable") or 0)
        return row.files if quantity == "files" else row.tables


def forecast_limits(reports: Iterable[SparkReport], days: Iterable[UsageDay]) -> list[LimitForecast]:
    """Return a forecast for each limit of the tenants, their warehouses and namespaces.

    Archived warehouses do not count, as in `usage`: limits are about the warehouses of the catalog configuration.
    A limit of a namespace has no forecast before the first row that was recorded with it. A limit of compute has none
    if the report begins after the first day of the last month, or if no hours were ever recorded.
    """
    by_stack: dict[str, list[UsageDay]] = {}
    for day in days:
        by_stack.setdefault(day.stack.name, []).append(day)
    forecasts: list[LimitForecast] = []
    for report in reports:
        warehouses = as_list(report.report.get("warehouses"))
        rows = [row for row in by_stack.get(report.stack.name, []) if row.warehouse in warehouses]
        for part in _list_parts(report):
            selected = [row for row in rows if part.includes(row)]
            forecasts += (_forecast(part, name, selected) for name in QUANTITIES if name in part.limits and selected)
            if COMPUTE in part.limits and _has_hours(selected) and _has_whole_month(report, selected):
                forecasts.append(_forecast_compute(part, selected))
    return forecasts


def _has_hours(rows: Iterable[UsageDay]) -> bool:
    return any(row.cu_hours is not None for row in rows)


def _has_whole_month(report: SparkReport, rows: Iterable[UsageDay]) -> bool:
    since = as_text(report.report.get("since"))
    return since is None or date.fromisoformat(since) <= max(row.day for row in rows).replace(day=1)


def _list_parts(report: SparkReport) -> Iterator[_LimitedPart]:
    name, limits = report.stack.name, as_mapping(report.report.get("limits"))
    yield _LimitedPart(name, None, None, as_mapping(limits.get("tenant")))
    for warehouse, values in as_mapping(limits.get("warehouses")).items():
        of_warehouse = as_mapping(values)
        yield _LimitedPart(name, warehouse, None, of_warehouse)
        for namespace, of_namespace in as_mapping(of_warehouse.get("namespaces")).items():
            yield _LimitedPart(name, warehouse, namespace, as_mapping(of_namespace))


def _forecast(part: _LimitedPart, quantity: str, rows: Iterable[UsageDay]) -> LimitForecast:
    amounts, limit = _sum_days(part, rows, quantity), int(part.limits[quantity])
    last = max(amounts)
    recent = {day: amount for day, amount in amounts.items() if last - day <= timedelta(days=TREND_DAYS)}
    slope, used = compute_slope(recent), amounts[last]
    reached = _find_day(last, limit - used, slope)
    return LimitForecast(part.stack, part.warehouse, part.namespace, quantity, limit, used, slope, reached)


def _forecast_compute(part: _LimitedPart, rows: Sequence[UsageDay]) -> LimitForecast:
    """Return the forecast of a limit on hours in a month, by the mean of the last days. Each month begins with 0."""
    limit, last = int(part.limits[COMPUTE]), max(row.day for row in rows)
    first = max(min(row.day for row in rows), last - timedelta(days=TREND_DAYS - 1))
    recent = sum((Fraction(row.cu_hours or 0) for row in rows if row.day >= first), Fraction())
    hours = sum((Fraction(row.cu_hours or 0) for row in rows if row.month == f"{last:%Y-%m}"), Fraction())
    per_day = recent / ((last - first).days + 1)
    reached = _find_day(last, limit - hours, per_day)
    if reached is not None and reached.replace(day=1) != last.replace(day=1):
        reached = None
    return LimitForecast(part.stack, part.warehouse, part.namespace, COMPUTE, limit, int(hours), per_day, reached)


def _find_day(last: date, remaining: Fraction | int, per_day: Fraction) -> date | None:
    """Return the day on which nothing remains; None if there is growth for none, or for more than ten years."""
    if remaining <= 0:
        return last
    days = ceil(remaining / per_day) if per_day > 0 else None
    return None if days is None or days > _MAX_DAYS else last + timedelta(days=days)


def _sum_days(part: _LimitedPart, rows: Iterable[UsageDay], quantity: str) -> dict[date, int]:
    """Return the amount of each day. A warehouse without a row on a day has the amount of its last row before it."""
    by_warehouse: dict[str, dict[date, int]] = {}
    for row in rows:
        by_warehouse.setdefault(row.warehouse, {})[row.day] = part.read_amount(row, quantity)
    last_amounts: dict[str, int] = {}
    sums: dict[date, int] = {}
    for day in sorted({day for amounts in by_warehouse.values() for day in amounts}):
        last_amounts |= {name: amounts[day] for name, amounts in by_warehouse.items() if day in amounts}
        sums[day] = sum(last_amounts.values())
    return sums


def compute_slope(amounts: Mapping[date, int]) -> Fraction:
    """Return the growth per day by the least-squares line; 0 for a single day.

    >>> compute_slope({date(2026, 11, 1): 10, date(2026, 11, 2): 20, date(2026, 11, 3): 30})
    Fraction(10, 1)
    """
    numbers = {Fraction(day.toordinal()): amount for day, amount in amounts.items()}
    mean = sum(numbers, Fraction()) / len(numbers)
    level = Fraction(sum(numbers.values()), len(numbers))
    squares = sum(((number - mean) ** 2 for number in numbers), Fraction())
    products = sum(((number - mean) * (amount - level) for number, amount in numbers.items()), Fraction())
    return products / squares if squares else Fraction()
