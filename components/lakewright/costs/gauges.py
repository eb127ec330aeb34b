"""Prometheus gauges of the last recorded day of each warehouse, and of limits with their forecasts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from lakewright.costs.forecast import LimitForecast
from lakewright.costs.usage_days import STORAGE_KINDS, UsageDay
from lakewright.fleet.selection import SelectedStack

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_DAY_LABELS = ("tenant", "stack", "environment", "warehouse", "owner")
_LIMIT_LABELS = ("tenant", "stack", "environment", "warehouse", "namespace", "quantity")


def make_gauges(
    days: Iterable[UsageDay], forecasts: Iterable[LimitForecast], stacks: Mapping[str, SelectedStack]
) -> CollectorRegistry:
    """Return the gauges. Amounts that no source reports have no gauge.

    Args:
        days: Recorded days.
        forecasts: Forecasts of the limits. The labels of a limit of a tenant have no warehouse.
        stacks: The stacks by name.
    """
    from prometheus_client import CollectorRegistry, Gauge  # noqa: PLC0415 - slow to load

    registry = CollectorRegistry()

    def add_gauge(name: str, text: str, labels: Iterable[str]) -> Gauge:
        return Gauge(f"lakewright_{name}", text, tuple(labels), registry=registry)

    last_days = {(day.stack.name, day.warehouse): day for day in sorted(days, key=lambda day: day.day)}
    storage = add_gauge("usage_storage_bytes", "Bytes on the last recorded day, by kind.", (*_DAY_LABELS, "kind"))
    measures = {
        add_gauge(f"usage_{name}", f"{text} on the last recorded day.", _DAY_LABELS): name
        for name, text in (
            ("tables", "Tables"),
            ("files", "Live files"),
            ("requests", "Requests to the store"),
            ("cu_hours", "Hours of computing units"),
            ("maintenance_minutes", "Minutes of maintenance jobs"),
        )
    }
    day_time = add_gauge("usage_day_timestamp_seconds", "Last recorded UTC day, in seconds since 1970.", _DAY_LABELS)
    for day in last_days.values():
        labels = (day.stack.tenant, day.stack.name, day.stack.environment, day.warehouse, day.owner)
        for kind in STORAGE_KINDS:
            if (size := day.stored.get(kind)) is not None:
                storage.labels(*labels, kind).set(size)
        for gauge, name in measures.items():
            if (amount := getattr(day, name)) is not None:
                gauge.labels(*labels).set(float(amount))
        day_time.labels(*labels).set(_to_seconds(day.day))
    limits = {
        name: add_gauge(f"limit{name}", text, _LIMIT_LABELS)
        for name, text in (
            ("", "The limit."),
            ("_used", "Amount that the limit counts, on the last recorded day."),
            ("_growth_per_day", "Growth per day by the trend of the last days."),
            ("_reached_timestamp_seconds", "Day on which the limit is reached by the trend, in seconds since 1970."),
        )
    }
    for forecast in forecasts:
        stack = stacks[forecast.stack]
        part = (forecast.warehouse or "", forecast.namespace or "", forecast.quantity)
        labels = (stack.tenant, stack.name, stack.environment, *part)
        limits[""].labels(*labels).set(forecast.limit)
        limits["_used"].labels(*labels).set(forecast.used)
        limits["_growth_per_day"].labels(*labels).set(float(forecast.per_day))
        if forecast.reached_on is not None:
            limits["_reached_timestamp_seconds"].labels(*labels).set(_to_seconds(forecast.reached_on))
    return registry


def _to_seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
