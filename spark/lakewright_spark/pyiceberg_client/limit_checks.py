"""Compare a usage report with the limits of the tenant, its warehouses and their namespaces. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.limits import DataLimits, WarehouseLimits
from lakewright_spark.pyiceberg_client.usage import Total, UsageReport, WarehouseUsage, total

WARNING_SHARE = 0.8
"""Part of a limit from which on `usage` warns."""
Quantity = Literal["bytes", "files", "tables", "compute"]
State = Literal["below", "near", "reached"]


@dataclass(frozen=True)
class LimitUse:
    """A limit, and how much of it is used."""

    scope: str
    """Text for messages, such as `namespace results.sales`."""
    warehouse: str | None
    """Name of the warehouse; None for a limit of the tenant."""
    namespace: str | None
    quantity: Quantity
    limit: int
    used: int

    @property
    def state(self) -> State:
        """State of the limit: `near` from 80 % on, `reached` from 100 % on."""
        if self.used >= self.limit:
            return "reached"
        return "near" if self.used >= WARNING_SHARE * self.limit else "below"

    @property
    def percent(self) -> float:
        """Percentage of the limit that is used."""
        return round(100 * self.used / self.limit, 1)


@dataclass(frozen=True)
class ComputeHours:
    """Hours of computing units in this month."""

    by_warehouse: Mapping[str, float]
    is_complete: bool = True
    """Whether all warehouses could be read. Otherwise the sum may reach a limit, and nothing is below a limit."""

    @classmethod
    def from_days(cls, days: Mapping[tuple[str, str], float], *, is_complete: bool) -> ComputeHours:
        """Return the sums of hours by warehouse and day."""
        by_warehouse: dict[str, float] = {}
        for (name, _), hours in days.items():
            by_warehouse[name] = by_warehouse.get(name, 0.0) + hours
        return cls(by_warehouse, is_complete)

    def count(self, limit: int, warehouse: str | None = None) -> int | None:
        """Return the whole hours of a warehouse, or of all; None if they are not known.

        A limit is reached when its last hour has ended.
        """
        hours = sum(self.by_warehouse.values()) if warehouse is None else self.by_warehouse.get(warehouse, 0.0)
        # Each pod counts in one warehouse. Without all warehouses, only the sum of all is a lower bound.
        return int(hours) if self.is_complete or (warehouse is None and hours >= limit) else None


Amounts = Mapping[Quantity, int]
"""Amounts that limits on data count."""


@dataclass(frozen=True)
class MeasuredAmounts:
    """Amounts by warehouse and namespace that limits count. Warehouses that could not be read are absent."""

    warehouses: Mapping[str, Amounts]
    namespaces: Mapping[str, Mapping[str, Amounts]]
    """Amounts by warehouse and full name of the namespace."""


def list_limit_uses(config: CatalogConfig, report: UsageReport, compute: ComputeHours | None = None) -> list[LimitUse]:
    """Return the use of every limit of the configuration, first the limits of the tenant.

    A warehouse that could not be read counts nothing, and its own limits are left out. The limits of the tenant need a
    report on all of its warehouses.

    Args:
        config: The configuration.
        report: The usage of its warehouses.
        compute: Hours of computing units; None if they are not known.
    """
    limits = {warehouse.name: warehouse.limits for warehouse in config.warehouses}
    amounts = MeasuredAmounts(
        {usage.warehouse: _count(total([usage])) for usage in report.warehouses},
        {usage.warehouse: measure_limited_namespaces(limits[usage.warehouse], usage) for usage in report.warehouses},
    )
    return compare_amounts(config, amounts, compute)


def compare_amounts(
    config: CatalogConfig, amounts: MeasuredAmounts, compute: ComputeHours | None = None
) -> list[LimitUse]:
    """Return the use of every limit of the configuration, as `list_limit_uses` does, by measured amounts."""
    uses: list[LimitUse] = []
    if config.limits and amounts.warehouses.keys() >= {warehouse.name for warehouse in config.warehouses}:
        uses += _compare(f"tenant {config.tenant}", None, None, config.limits, _add(amounts.warehouses.values()))
    if config.limits and compute:
        scope = f"computing units of tenant {config.tenant}"
        uses += _compare_hours(scope, None, config.limits.compute, compute)
    for warehouse in config.warehouses:
        name = warehouse.name
        if warehouse.limits and compute:
            uses += _compare_hours(f"computing units of warehouse {name}", name, warehouse.limits.compute, compute)
        if name not in amounts.warehouses or warehouse.limits is None:
            continue
        uses += _compare(f"warehouse {name}", name, None, warehouse.limits, amounts.warehouses[name])
        for namespace, limits in warehouse.limits.namespaces.items():
            if (counted := amounts.namespaces.get(name, {}).get(namespace)) is not None:
                uses += _compare(f"namespace {name}.{namespace}", name, namespace, limits, counted)
    return uses


def _compare_hours(scope: str, warehouse: str | None, limit: int | None, compute: ComputeHours) -> Iterator[LimitUse]:
    used = None if limit is None else compute.count(limit, warehouse)
    if limit is not None and used is not None:
        yield LimitUse(scope, warehouse, None, "compute", limit, used)


def _compare(
    scope: str, warehouse: str | None, namespace: str | None, limits: DataLimits, amounts: Amounts
) -> Iterator[LimitUse]:
    for quantity, used in amounts.items():
        limit = getattr(limits, quantity)
        if limit is not None:
            yield LimitUse(scope, warehouse, namespace, quantity, limit, used)


def measure_limited_namespaces(limits: WarehouseLimits | None, usage: WarehouseUsage) -> dict[str, dict[Quantity, int]]:
    """Return the amounts that limits count in each namespace with limits; empty without such limits."""
    namespaces = limits.namespaces if limits else ()
    return {namespace: _count(total([_select_namespace(usage, namespace)])) for namespace in namespaces}


def _add(parts: Iterable[Amounts]) -> Amounts:
    sums: dict[Quantity, int] = {"bytes": 0, "files": 0, "tables": 0}
    for part in parts:
        for quantity, amount in part.items():
            sums[quantity] = sums.get(quantity, 0) + amount
    return sums


def _count(sums: Total) -> dict[Quantity, int]:
    """Return the amounts that limits on data count."""
    return {"bytes": sums.bytes_live + sums.bytes_reclaimable, "files": sums.files, "tables": sums.tables}


def _select_namespace(usage: WarehouseUsage, namespace: str) -> WarehouseUsage:
    """Return the usage of a namespace and the namespaces below it. Case is ignored, as Lakekeeper does."""
    levels = [level.casefold() for level in namespace.split(".")]
    tables = (
        table
        for table in usage.tables
        if [level.casefold() for level in table.table.namespace[: len(levels)]] == levels
    )
    return replace(usage, tables=tuple(tables), views=())
