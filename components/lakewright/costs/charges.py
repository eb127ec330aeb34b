"""Charges: the amount and cost of each meter of a warehouse in a month. Exact sums: no amount is rounded before."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

from lakewright.costs.prices import Prices
from lakewright.costs.usage_days import STORAGE_KINDS, UsageDay
from lakewright.fleet.selection import SelectedStack

GIGABYTE = 10**9
_DIGITS = Decimal("1e-12")
"""Digits of amounts and costs: more than a byte-day of storage costs at any price."""


@dataclass(frozen=True)
class Meter:
    """A kind of usage with its units, in the notation of FOCUS."""

    name: str
    service: str
    category: str
    description: str
    consumed_unit: str
    pricing_unit: str
    price: str
    """Field of `Prices`."""
    measure: Callable[[UsageDay], Fraction | None]
    """Returns the amount of a day in the consumed unit; None if no source reports it."""
    convert: Callable[[Fraction, date], Fraction]
    """Converts an amount of a day to the pricing unit."""


def _divide(divisor: int) -> Callable[[Fraction, date], Fraction]:
    def convert(amount: Fraction, day: date) -> Fraction:
        del day
        return amount / divisor

    return convert


def _to_months(amount: Fraction, day: date) -> Fraction:
    return amount / monthrange(day.year, day.month)[1]


def _build_storage_meter(kind: str) -> Meter:
    def measure(day: UsageDay) -> Fraction | None:
        size = day.stored.get(kind)
        return None if size is None else Fraction(size, GIGABYTE)

    text = kind.replace("_", "-")
    service = ("Iceberg storage", "Storage", f"{text} files")
    return Meter(f"storage-{text}", *service, "GB-Days", "GB-Months", "storage_gb_month", measure, _to_months)


def _to_fraction(amount: Decimal | int | None) -> Fraction | None:
    return None if amount is None else Fraction(amount)


METERS = (
    *map(_build_storage_meter, STORAGE_KINDS),
    Meter(
        "requests",
        "Iceberg storage",
        "Storage",
        "requests to the store",
        "Requests",
        "1000 Requests",
        "requests_1000",
        lambda day: _to_fraction(day.requests),
        _divide(1000),
    ),
    Meter(
        "compute",
        "Computing units",
        "Compute",
        "hours of computing units",
        "CU-Hours",
        "CU-Hours",
        "cu_hour",
        lambda day: _to_fraction(day.cu_hours),
        _divide(1),
    ),
    Meter(
        "maintenance",
        "Table maintenance",
        "Compute",
        "maintenance jobs",
        "Minutes",
        "Hours",
        "maintenance_hour",
        lambda day: _to_fraction(day.maintenance_minutes),
        _divide(60),
    ),
)


@dataclass(frozen=True)
class Charge:
    """The amount of a meter of a warehouse in a month."""

    stack: SelectedStack
    warehouse: str
    owner: str
    month: str
    meter: Meter
    start: date
    """First day with a row."""
    end: date
    """Day after the last day with a row."""
    days: int
    """Number of days with a row. Days without a row are not charged."""
    consumed: Decimal
    priced: Decimal
    unit_price: Decimal | None
    cost: Decimal | None
    """None without a price."""


def compute_charges(days: Iterable[UsageDay], prices: Prices | None) -> list[Charge]:
    """Return the charges by month, stack, warehouse, owner and meter. Meters that no source reports are left out."""
    by_part: dict[tuple[str, str, str, str], list[UsageDay]] = {}
    for day in days:
        by_part.setdefault((day.month, day.stack.name, day.warehouse, day.owner), []).append(day)
    charges: list[Charge] = []
    for _, part in sorted(by_part.items()):
        for meter in METERS:
            amounts = {day.day: amount for day in part if (amount := meter.measure(day)) is not None}
            if amounts:
                charges.append(_build_charge(part[0], meter, amounts, prices))
    return charges


def _build_charge(part: UsageDay, meter: Meter, amounts: Mapping[date, Fraction], prices: Prices | None) -> Charge:
    price: Decimal | None = getattr(prices, meter.price) if prices else None
    priced = sum((meter.convert(amount, day) for day, amount in amounts.items()), Fraction())
    return Charge(
        part.stack,
        part.warehouse,
        part.owner,
        part.month,
        meter,
        start=min(amounts),
        end=max(amounts) + timedelta(days=1),
        days=len(amounts),
        consumed=to_decimal(sum(amounts.values(), Fraction())),
        priced=to_decimal(priced),
        unit_price=price,
        cost=None if price is None else to_decimal(priced * Fraction(price)),
    )


def to_decimal(amount: Fraction) -> Decimal:
    """Return a fraction rounded to twelve digits after the point."""
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(amount.numerator) / Decimal(amount.denominator)
        return exact.quantize(_DIGITS, ROUND_HALF_EVEN)


def format_decimal(amount: Decimal) -> str:
    """Return a decimal without trailing zeros and without an exponent."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
