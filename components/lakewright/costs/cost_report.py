"""The report of `lakewright fleet usage --since 90d`: charges in groups, growth, and forecasts of limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from lakewright.costs.charges import Charge, compute_charges, format_decimal
from lakewright.costs.focus import format_csv, list_focus_rows
from lakewright.costs.forecast import LimitForecast, forecast_limits
from lakewright.costs.gauges import make_gauges
from lakewright.costs.prices import Prices
from lakewright.costs.usage_days import UsageDay, list_days
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport, compute_exit_code
from lakewright.terminal.json_document import make_head
from lakewright.terminal.text_lines import format_table

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

DAYS_COMMAND = ("daily-usage",)
"""The command of `lakewright-spark`."""
_FORMS = "`month`, `owner`, `label`, or `label=NAME`"


@dataclass(frozen=True)
class Grouping:
    """How charges are grouped: always by month, and by owner or label in addition."""

    kind: str
    label: str = ""
    """Name of the label; empty for all labels together."""

    @classmethod
    def parse(cls, text: str) -> Grouping:
        """Return the grouping of a text.

        Raises:
            ValueError: The text is not a grouping.
        """
        kind, _, label = text.partition("=")
        if kind not in {"month", "owner", "label"} or (label and kind != "label") or text.endswith("="):
            raise ValueError(f"expected {_FORMS}, found {text!r}")
        return cls(kind, label)

    def name_group(self, stack: SelectedStack, owner: str) -> str:
        """Return the name of the group; `-` for stacks without the label."""
        if self.kind == "month":
            return "all"
        if self.kind == "owner":
            return owner
        if self.label:
            return stack.labels.get(self.label, "-")
        return ",".join(f"{name}={value}" for name, value in sorted(stack.labels.items())) or "-"


@dataclass(frozen=True)
class CostGroup:
    """Usage of a group in a month."""

    month: str
    group: str
    stored: int
    """Bytes on the last recorded day of each warehouse."""
    growth: int
    """Bytes on the last day of each warehouse in the month, less its bytes on the first day."""
    gb_days: Decimal
    maintenance_minutes: Decimal
    days: int
    """Days with at least one row."""
    cost: Decimal | None
    """None if no meter has a price."""


def group_costs(days: Sequence[UsageDay], charges: Sequence[Charge], grouping: Grouping) -> list[CostGroup]:
    """Return the groups by month and name."""
    days_by_group: dict[tuple[str, str], list[UsageDay]] = {}
    for day in days:
        days_by_group.setdefault((day.month, grouping.name_group(day.stack, day.owner)), []).append(day)
    charges_by_group: dict[tuple[str, str], list[Charge]] = {}
    for charge in charges:
        charges_by_group.setdefault((charge.month, grouping.name_group(charge.stack, charge.owner)), []).append(charge)
    return [
        _build_group(month, group, rows, charges_by_group[month, group])
        for (month, group), rows in sorted(days_by_group.items())
    ]


def _build_group(month: str, group: str, days: Sequence[UsageDay], charges: Sequence[Charge]) -> CostGroup:
    ordered = sorted(days, key=lambda day: day.day)
    first = {(day.stack.name, day.warehouse): day.bytes for day in reversed(ordered)}
    last = {(day.stack.name, day.warehouse): day.bytes for day in ordered}
    costs = [charge.cost for charge in charges if charge.cost is not None]
    return CostGroup(
        month,
        group,
        stored=sum(last.values()),
        growth=sum(last.values()) - sum(first.values()),
        gb_days=sum((charge.consumed for charge in charges if charge.meter.consumed_unit == "GB-Days"), Decimal()),
        maintenance_minutes=sum(
            (charge.consumed for charge in charges if charge.meter.name == "maintenance"), Decimal()
        ),
        days=len({day.day for day in days}),
        cost=sum(costs, Decimal()) if costs else None,
    )


@dataclass(frozen=True)
class CostReport:
    """Usage and costs of a fleet since a time."""

    reports: Sequence[SparkReport]
    grouping: Grouping
    prices: Prices | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document: groups, rows of FOCUS, forecasts and the exit code. Decimals are text."""
        days = list_days(self.reports)
        charges = compute_charges(days, self.prices)
        return {
            **make_head("costs"),
            "by": f"label={self.grouping.label}" if self.grouping.label else self.grouping.kind,
            "currency": self.prices.currency if self.prices else None,
            "stacks": [report.to_json() for report in self.reports],
            "groups": [_group_to_json(group) for group in group_costs(days, charges, self.grouping)],
            "focus": list_focus_rows(charges, self.prices) if self.prices else [],
            "limits": [_forecast_to_json(forecast) for forecast in forecast_limits(self.reports, days)],
            "exit": compute_exit_code(self.reports),
        }

    def make_gauges(self) -> CollectorRegistry:
        """Return gauges for Prometheus: the last recorded days, and the limits with their forecasts."""
        days, stacks = list_days(self.reports), {report.stack.name: report.stack for report in self.reports}
        return make_gauges(days, forecast_limits(self.reports, days), stacks)

    def format_csv(self) -> str:
        """Return the charges as CSV with the columns of FOCUS. Without prices, there are no rows."""
        prices = self.prices
        return format_csv(compute_charges(list_days(self.reports), prices), prices) if prices else ""

    def format_lines(self) -> list[str]:
        """Return a table of the groups, and a table of the limits, as lines of plain text."""
        days = list_days(self.reports)
        currency = self.prices.currency if self.prices else ""
        groups = group_costs(days, compute_charges(days, self.prices), self.grouping)
        head = ("MONTH", "GROUP", "STORED", "GROWTH", "GB-DAYS", "MINUTES", "DAYS", "COST")
        lines = format_table(head, [_format_group(group, currency) for group in groups])
        if forecasts := forecast_limits(self.reports, days):
            head = ("STACK", "LIMIT OF", "QUANTITY", "LIMIT", "USED", "REACHED ON")
            lines += ["", *format_table(head, [_format_forecast(forecast) for forecast in forecasts])]
        return lines


def _group_to_json(group: CostGroup) -> Mapping[str, Any]:
    return {
        "month": group.month,
        "group": group.group,
        "bytes": group.stored,
        "growth": group.growth,
        "gb_days": format_decimal(group.gb_days),
        "maintenance_minutes": format_decimal(group.maintenance_minutes),
        "days": group.days,
        "cost": None if group.cost is None else format_decimal(group.cost),
    }


def _forecast_to_json(forecast: LimitForecast) -> Mapping[str, Any]:
    return {
        "stack": forecast.stack,
        "warehouse": forecast.warehouse,
        "namespace": forecast.namespace,
        "quantity": forecast.quantity,
        "limit": forecast.limit,
        "used": forecast.used,
        "per_day": float(forecast.per_day),
        "reached_on": forecast.reached_on and f"{forecast.reached_on:%Y-%m-%d}",
    }


def _format_group(group: CostGroup, currency: str) -> tuple[str, ...]:
    sign = "-" if group.growth < 0 else "+"
    return (
        group.month,
        group.group,
        decimal(group.stored),
        f"{sign}{decimal(abs(group.growth))}",
        f"{group.gb_days:,.3f}",
        f"{group.maintenance_minutes:,.1f}",
        str(group.days),
        "-" if group.cost is None else f"{group.cost:,.2f} {currency}",
    )


def _format_forecast(forecast: LimitForecast) -> tuple[str, ...]:
    limit, used = (
        decimal(amount) if forecast.quantity == "bytes" else f"{amount:,}" for amount in (forecast.limit, forecast.used)
    )
    if forecast.used >= forecast.limit:
        reached = "reached"
    else:
        reached = f"{forecast.reached_on:%Y-%m-%d}" if forecast.reached_on else "not by the trend"
    part = ".".join(filter(None, (forecast.warehouse, forecast.namespace))) or "tenant"
    return (forecast.stack, part, forecast.quantity, limit, used, reached)
