"""Rows of FOCUS 1.0 against the requirements of the specification.

Source: specification/columns at tag v1.0 of github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec.
"""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal

import pytest
from lakewright.costs.charges import compute_charges
from lakewright.costs.focus import COLUMNS, list_focus_rows
from lakewright.costs.prices import Prices
from lakewright.costs.usage_days import STORAGE_KINDS, UsageDay
from lakewright.fleet.selection import SelectedStack

MANDATORY = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
"""Columns with feature level Mandatory."""
RECOMMENDED_OR_CONDITIONAL = (
    "ChargeFrequency",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedUnitPrice",
    "ListUnitPrice",
    "PricingCategory",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
)
"""Columns of other feature levels that are written. Availability zones and commitment discounts have no columns."""
NULL = {"ChargeClass", "RegionId", "RegionName"}
"""Columns that are null here. All others must not be null, or must not be null for usage that is no correction.

ChargeClass must be null if the row is not a correction.
"""
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
    "ServiceCategory": {
        "AI and Machine Learning",
        "Analytics",
        "Business Applications",
        "Compute",
        "Databases",
        "Developer Tools",
        "Multicloud",
        "Identity",
        "Integration",
        "Internet of Things",
        "Management and Governance",
        "Media",
        "Migration",
        "Mobile",
        "Networking",
        "Security",
        "Storage",
        "Web",
        "Other",
    },
}
DECIMALS = (
    "BilledCost",
    "ConsumedQuantity",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "ListCost",
    "ListUnitPrice",
    "PricingQuantity",
)
TIMES = ("BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart")
STACK = SelectedStack("acme", {"name": "acme", "environment": "production", "labels": {"team": "orders"}})
DAY = UsageDay(
    STACK,
    "main",
    "user:oidc~ann",
    date(2026, 12, 31),
    stored=dict.fromkeys(STORAGE_KINDS, 1),
    requests=3,
    cu_hours=Decimal("0.1"),
    maintenance_minutes=Decimal("0.00001"),
)
PRICES = Prices.model_validate({"currency": "EUR", "storage_gb_month": "0.023"})
ROWS = list_focus_rows(compute_charges([DAY], PRICES), PRICES)


def test_columns_are_complete_and_sorted() -> None:
    assert sorted(MANDATORY + RECOMMENDED_OR_CONDITIONAL) == list(COLUMNS)
    assert all(tuple(row) == COLUMNS for row in ROWS)
    assert {row["SkuId"] for row in ROWS} == {
        *(f"storage-{kind.replace('_', '-')}" for kind in STORAGE_KINDS),
        "requests",
        "compute",
        "maintenance",
    }


@pytest.mark.parametrize("column", COLUMNS)
def test_nulls_are_where_the_specification_allows_them(column: str) -> None:
    """A unit without a price has cost and price 0: `PRICES` has the price of storage only."""
    assert {bool(row[column]) for row in ROWS} == {column not in NULL}


@pytest.mark.parametrize("column", ALLOWED)
def test_values_are_allowed(column: str) -> None:
    assert {row[column] for row in ROWS} <= ALLOWED[column]


@pytest.mark.parametrize("column", DECIMALS)
def test_numbers_have_no_exponent_and_no_sign(column: str) -> None:
    assert all(re.fullmatch(r"\d+(\.\d+)?", row[column]) for row in ROWS)


@pytest.mark.parametrize("column", TIMES)
def test_times_are_in_utc(column: str) -> None:
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[column]) for row in ROWS)
    assert {row["BillingPeriodEnd"] for row in ROWS} == {"2027-01-01T00:00:00Z"}, "the end is exclusive"


def test_costs_agree_without_discounts() -> None:
    for row in ROWS:
        assert len({row[name] for name in ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")}) == 1
        assert row["ContractedUnitPrice"] == row["ListUnitPrice"]


@pytest.mark.parametrize("column", ["ConsumedUnit", "PricingUnit"])
def test_units_have_the_form_of_the_specification(column: str) -> None:
    """`<plural-units>`, `<singular-unit>-<plural-time-units>` or `<quantity> <plural-units>`."""
    form = r"(\d+ )?[A-Z][A-Za-z]*s|[A-Z][A-Za-z]*-(Seconds|Minutes|Hours|Days|Months|Years)"
    assert all(re.fullmatch(form, row[column]) for row in ROWS)


def test_each_service_has_one_category() -> None:
    assert len({(row["ServiceName"], row["ServiceCategory"]) for row in ROWS}) == len({r["ServiceName"] for r in ROWS})


def test_tags_of_lakewright_have_its_prefix() -> None:
    expected = {"team": "orders", "lakewright:stack": "acme", "lakewright:environment": "production"}
    assert [json.loads(row["Tags"]) for row in ROWS] == [expected] * len(ROWS)
