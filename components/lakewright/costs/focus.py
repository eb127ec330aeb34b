"""Charges as rows of FOCUS 1.0, the FinOps Open Cost and Usage Specification (https://focus.finops.org).

Source: the columns of the specification at tag v1.0 of github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec. Costs
and unit prices of usage must not be null there, so rows need prices, and a unit without a price is free.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal

from lakewright.costs.charges import Charge, format_decimal
from lakewright.costs.prices import Prices


def list_focus_rows(charges: Iterable[Charge], prices: Prices) -> list[dict[str, str]]:
    """Return a row for each charge, by the names of the columns. Values are text; an empty text is null."""
    return [_build_row(charge, prices) for charge in charges]


def format_csv(charges: Sequence[Charge], prices: Prices) -> str:
    """Return the rows as CSV with a head line."""
    text = io.StringIO()
    writer: csv.DictWriter[str] = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(list_focus_rows(charges, prices))
    return text.getvalue()


def _build_row(charge: Charge, prices: Prices) -> dict[str, str]:
    first = date.fromisoformat(f"{charge.month}-01")
    cost, price = format_decimal(charge.cost or Decimal()), format_decimal(charge.unit_price or Decimal())
    stack, meter = charge.stack, charge.meter
    tags = {**stack.labels, "lakewright:stack": stack.name, "lakewright:environment": stack.environment}
    return {
        "BilledCost": cost,
        "BillingAccountId": prices.billing_account,
        "BillingAccountName": prices.billing_account,
        "BillingCurrency": prices.currency,
        "BillingPeriodEnd": _format_start(_find_next_month(first)),
        "BillingPeriodStart": _format_start(first),
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargeDescription": f"{meter.description} of warehouse {charge.warehouse}, {charge.days} days",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _format_start(charge.end),
        "ChargePeriodStart": _format_start(charge.start),
        "ConsumedQuantity": format_decimal(charge.consumed),
        "ConsumedUnit": meter.consumed_unit,
        "ContractedCost": cost,
        "ContractedUnitPrice": price,
        "EffectiveCost": cost,
        "InvoiceIssuerName": prices.provider,
        "ListCost": cost,
        "ListUnitPrice": price,
        "PricingCategory": "Standard",
        "PricingQuantity": format_decimal(charge.priced),
        "PricingUnit": meter.pricing_unit,
        "ProviderName": prices.provider,
        "PublisherName": prices.provider,
        "RegionId": "",
        "RegionName": "",
        "ResourceId": f"{stack.name}/{charge.warehouse}",
        "ResourceName": charge.warehouse,
        "ResourceType": "Warehouse",
        "ServiceCategory": meter.category,
        "ServiceName": meter.service,
        "SkuId": meter.name,
        "SkuPriceId": f"{meter.name}/{prices.currency}",
        "SubAccountId": charge.owner,
        "SubAccountName": charge.owner,
        "Tags": json.dumps({name: value for name, value in tags.items() if value}, sort_keys=True),
    }


COLUMNS = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
)
"""The mandatory columns of FOCUS 1.0, and the recommended and conditional columns that apply."""


def _find_next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)


def _format_start(day: date) -> str:
    """Return the beginning of a UTC day in FOCUS's format of times."""
    return f"{day:%Y-%m-%d}T00:00:00Z"
