"""Forecasts: the day on which a warehouse or a tenant reaches a limit, from the trend of the last thirty days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

from lakewright.costs.usage_days import UsageDay
from lakewright.fleet.spark_reports import SparkReport
from lakewright.validation.documents import as_mapping

TREND_DAYS = 30
"""Days before the last row that the trend takes."""
_MAX_DAYS = 3650
"""A limit that is further away has no forecast."""
QUANTITIES = ("bytes", "files", "tables")


@dataclass(frozen=True)
class LimitForecast:
    """When a limit is reached, by the trend."""

    stack: str
    warehouse: str | None
    """Name of the warehouse; None for a limit of the tenant."""
    quantity: str
    limit: int
    used: int
    """Usage on the last day."""
    per_day: Fraction
    """Growth per day by the least-squares line; 0 with a single day."""
    reached_on: date | None
    """Day of the last row if the limit is reached already; None if usage does not grow, or grows for ten more years."""


def forecast_limits(reports: Iterable[SparkReport], days: Iterable[UsageDay]) -> list[LimitForecast]:
    """Return a forecast for each limit on bytes, files and tables of the tenants and their warehouses."""
    by_stack: dict[str, list[UsageDay]] = {}
    for day in days:
        by_stack.setdefault(day.stack.name, []).append(day)
    forecasts: list[LimitForecast] = []
    for report in reports:
        name, limits = report.stack.name, as_mapping(report.report.get("limits"))
        rows = by_stack.get(name, [])
        parts: list[tuple[str | None, Mapping[str, Any]]] = [(None, as_mapping(limits.get("tenant")))]
        parts += [(warehouse, as_mapping(part)) for warehouse, part in as_mapping(limits.get("warehouses")).items()]
        for warehouse, part in parts:
            selected = [row for row in rows if warehouse in (None, row.warehouse)]
            for quantity in QUANTITIES:
                if quantity in part and selected:
                    forecasts.append(_forecast(name, warehouse, quantity, int(part[quantity]), selected))
    return forecasts


def _forecast(stack: str, warehouse: str | None, quantity: str, limit: int, rows: Iterable[UsageDay]) -> LimitForecast:
    amounts = _sum_days(rows, quantity)
    last = max(amounts)
    recent = {day: amount for day, amount in amounts.items() if last - day <= timedelta(days=TREND_DAYS)}
    slope, used = compute_slope(recent), amounts[last]
    reached: date | None = last if used >= limit else None
    if reached is None and slope > 0:
        remaining = ceil((limit - used) / slope)
        reached = last + timedelta(days=remaining) if remaining <= _MAX_DAYS else None
    return LimitForecast(stack, warehouse, quantity, limit, used, slope, reached)


def _sum_days(rows: Iterable[UsageDay], quantity: str) -> dict[date, int]:
    """Return the amount of each day. A warehouse without a row on a day has the amount of its last row before it."""
    by_warehouse: dict[str, dict[date, int]] = {}
    for row in rows:
        by_warehouse.setdefault(row.warehouse, {})[row.day] = _read_amount(row, quantity)
    last_amounts: dict[str, int] = {}
    sums: dict[date, int] = {}
    for day in sorted({day for amounts in by_warehouse.values() for day in amounts}):
        last_amounts |= {name: amounts[day] for name, amounts in by_warehouse.items() if day in amounts}
        sums[day] = sum(last_amounts.values())
    return sums


def _read_amount(row: UsageDay, quantity: str) -> int:
    """Return the amount that a limit counts, as `usage` does: live and reclaimable bytes, live files, tables."""
    if quantity == "bytes":
        return (row.stored.get("live") or 0) + (row.stored.get("reclaimable") or 0)
    return row.files if quantity == "files" else row.tables


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
