"""Costs of three simulated months, exact to the byte, by month, owner and label, and as rows of FOCUS."""

from __future__ import annotations

import csv
import io
import json
from calendar import monthrange
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from lakewright.costs.charges import GIGABYTE, Charge, compute_charges, to_decimal
from lakewright.costs.cost_report import CostReport, Grouping, group_costs
from lakewright.costs.focus import COLUMNS
from lakewright.costs.prices import Prices, read_prices
from lakewright.costs.usage_days import list_days
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport
from lakewright.validation.problems import SpecError

FIRST = date(2026, 9, 1)
ACME = SelectedStack(
    "acme-prod", {"name": "acme", "environment": "production", "labels": {"team": "orders", "cost-center": "4711"}}
)
BETA = SelectedStack("beta", {"name": "beta", "environment": "production"})
PRICES = Prices.model_validate(
    {"currency": "EUR", "storage_gb_month": "0.023", "maintenance_hour": "0.3", "cu_hour": "0.12"}
)


def build_row(day: date, warehouse: str, owner: str | None, live: int, **more: Any) -> dict[str, Any]:
    return {
        "day": f"{day:%F}",
        "warehouse": warehouse,
        "owner": owner,
        "tables": 3,
        "files": 40,
        "bytes_live": live,
        "bytes_reclaimable": 7,
        "bytes_orphan": None,
        "bytes_soft_deleted": 0,
        "requests": None,
        "cu_hours": None,
        "maintenance_minutes": 1.5,
        **more,
    }


def grow(number: int) -> int:
    """Return the live bytes of warehouse `a` on a day: odd numbers, so that rounding would show."""
    return 1_234_567_891 + 1_000_003 * number


DAYS = [FIRST + timedelta(days=number) for number in range(91)]
"""September, October and November."""
REPORTS = [
    SparkReport(
        ACME,
        {
            "days": [
                row
                for number, day in enumerate(DAYS)
                for row in (build_row(day, "a", "user:oidc~ann", grow(number)), build_row(day, "b", None, 10**9))
            ]
        },
    ),
    SparkReport(BETA, {"days": [build_row(DAYS[-1], "b", "user:oidc~ann", 5, maintenance_minutes=0.1)]}),
]


def find_charge(charges: list[Charge], month: str, stack: str, warehouse: str, meter: str) -> Charge:
    (charge,) = (
        charge
        for charge in charges
        if (charge.month, charge.stack.name, charge.warehouse, charge.meter.name) == (month, stack, warehouse, meter)
    )
    return charge


@pytest.mark.parametrize("month", [9, 10, 11])
def test_storage_is_exact_to_the_byte(month: int) -> None:
    charges = compute_charges(list_days(REPORTS), PRICES)
    charge = find_charge(charges, f"2026-{month:02}", "acme-prod", "a", "storage-live")
    byte_days = sum(grow(number) for number, day in enumerate(DAYS) if day.month == month)
    length = monthrange(2026, month)[1]
    assert charge.consumed * GIGABYTE == byte_days
    assert charge.days == length
    assert charge.cost == to_decimal(Fraction(byte_days, GIGABYTE * length) * Fraction("0.023"))
    assert (charge.start, charge.end) == (date(2026, month, 1), date(2026, month, 1) + timedelta(days=length))


def test_a_full_month_of_a_gigabyte_costs_its_price() -> None:
    charges = compute_charges(list_days(REPORTS), PRICES)
    for month in ("2026-09", "2026-10", "2026-11"):
        assert find_charge(charges, month, "acme-prod", "b", "storage-live").cost == Decimal("0.023")


def test_units_without_source_or_price_have_no_cost() -> None:
    """No source reports requests, compute or orphan files; maintenance costs nothing without prices."""
    charges = compute_charges(list_days(REPORTS), None)
    assert {charge.meter.name for charge in charges} == {
        "storage-live",
        "storage-reclaimable",
        "storage-soft-deleted",
        "maintenance",
    }
    assert {charge.cost for charge in charges} == {None}
    maintenance = find_charge(compute_charges(list_days(REPORTS), PRICES), "2026-09", "acme-prod", "a", "maintenance")
    assert (maintenance.consumed, maintenance.priced, maintenance.cost) == (45, Decimal("0.75"), Decimal("0.225"))


def test_reported_requests_and_hours_are_charged() -> None:
    row = build_row(FIRST, "a", None, 0, requests=2500, cu_hours=0.25)
    prices = PRICES.model_copy(update={"requests_1000": Decimal("0.004")})
    days = list_days([SparkReport(BETA, {"days": [row]})])
    charges = {charge.meter.name: charge for charge in compute_charges(days, prices)}
    assert (charges["requests"].consumed, charges["requests"].cost) == (2500, Decimal("0.01"))
    assert (charges["compute"].consumed, charges["compute"].cost) == (Decimal("0.25"), Decimal("0.03"))


def group(by: str) -> dict[tuple[str, str], tuple[int, int, int]]:
    days = list_days(REPORTS)
    groups = group_costs(days, compute_charges(days, PRICES), Grouping.parse(by))
    return {(entry.month, entry.group): (entry.stored, entry.growth, entry.days) for entry in groups}


def test_groups_by_month_owner_and_label() -> None:
    assert group("month")["2026-10", "all"] == (grow(60) + 7 + 10**9 + 7, 30 * 1_000_003, 31)
    owners = group("owner")
    assert owners["2026-11", "user:oidc~ann"] == (grow(90) + 7 + 5 + 7, 29 * 1_000_003, 30)
    assert owners["2026-11", "acme"] == (10**9 + 7, 0, 30)
    assert {name for _, name in group("label=team")} == {"orders", "-"}
    assert {name for _, name in group("label")} == {"cost-center=4711,team=orders", "-"}
    with pytest.raises(ValueError, match=r"expected `month`, `owner`, `label`, or `label=NAME`, found 'week'"):
        Grouping.parse("week")


def test_sums_of_groups_are_the_same_for_every_grouping() -> None:
    days = list_days(REPORTS)
    charges = compute_charges(days, PRICES)
    sums = {
        sum(entry.cost or 0 for entry in group_costs(days, charges, Grouping.parse(by)))
        for by in ("month", "owner", "label", "label=team")
    }
    assert sums == {sum(charge.cost or 0 for charge in charges)}


def test_csv_has_the_columns_of_focus() -> None:
    report = CostReport(REPORTS, Grouping("month"), PRICES)
    rows = list(csv.DictReader(io.StringIO(report.format_csv())))
    assert list(rows[0]) == list(COLUMNS)
    live = next(row for row in rows if (row["SkuId"], row["ResourceName"]) == ("storage-live", "b"))
    expected = {
        "BilledCost": "0.023",
        "BillingCurrency": "EUR",
        "BillingPeriodStart": "2026-09-01T00:00:00Z",
        "BillingPeriodEnd": "2026-10-01T00:00:00Z",
        "ChargePeriodStart": "2026-09-01T00:00:00Z",
        "ChargePeriodEnd": "2026-10-01T00:00:00Z",
        "ConsumedQuantity": "30",
        "ConsumedUnit": "GB-Days",
        "PricingQuantity": "1",
        "PricingUnit": "GB-Months",
        "ResourceId": "acme-prod/b",
        "ServiceCategory": "Storage",
        "SubAccountId": "acme",
    }
    assert {name: live[name] for name in expected} == expected
    assert json.loads(live["Tags"])["cost-center"] == "4711"
    assert "E-" not in report.format_csv(), "no exponents"
    document = report.to_json()
    assert document["focus"] == rows
    billed = sum(Decimal(row["BilledCost"] or 0) for row in rows)
    assert sum(Decimal(entry["cost"]) for entry in document["groups"]) == billed


def test_lines_show_growth_and_cost() -> None:
    lines = CostReport(REPORTS, Grouping("owner"), PRICES).format_lines()
    assert lines[0].split() == ["MONTH", "GROUP", "STORED", "GROWTH", "GB-DAYS", "MINUTES", "DAYS", "COST"]
    (november,) = (line for line in lines if line.startswith("2026-11") and "ann" in line)
    assert "+29.0 MB" in november
    assert november.endswith(" EUR")


def test_prices_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("currency: EUR\nstorage_gb_month: 0.023\n")
    assert read_prices(file).storage_gb_month == Decimal("0.023")
    file.write_text("currency: euro\nstorage: 1\ncu_hour: -1\n")
    with pytest.raises(SpecError) as error:
        read_prices(file)
    assert [problem.path for problem in error.value.problems] == ["currency", "cu_hour", "storage"]
    with pytest.raises(SpecError, match="expected a file of prices: No such file"):
        read_prices(tmp_path / "missing.yaml")
