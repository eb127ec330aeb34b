"""UsageDay: the usage of a warehouse on a day, from the reports of `lakewright-spark daily-usage`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport
from lakewright.validation.documents import as_list, as_mapping, as_text

STORAGE_KINDS = ("live", "reclaimable", "orphan", "soft_deleted")
"""Kinds of stored bytes."""


@dataclass(frozen=True)
class UsageDay:
    """Usage of a warehouse on a UTC day. Amounts that no source reports are None."""

    stack: SelectedStack
    warehouse: str
    owner: str
    """The warehouse's owner, or else the tenant."""
    day: date
    tables: int = 0
    files: int = 0
    stored: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Bytes by kind."""
    requests: int | None = None
    cu_hours: Decimal | None = None
    maintenance_minutes: Decimal = Decimal()
    namespaces: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """Amounts by quantity of each namespace with limits."""

    @property
    def month(self) -> str:
        """UTC month, such as 2026-11."""
        return f"{self.day:%Y-%m}"

    @property
    def bytes(self) -> int:
        """All known bytes."""
        return sum(size or 0 for size in self.stored.values())


def list_days(reports: Iterable[SparkReport]) -> list[UsageDay]:
    """Return the days of all reports, by stack, warehouse and day."""
    return [
        _read_day(report.stack, as_mapping(row)) for report in reports for row in as_list(report.report.get("days"))
    ]


def _read_day(stack: SelectedStack, row: Mapping[str, Any]) -> UsageDay:
    hours = row.get("cu_hours")
    return UsageDay(
        stack=stack,
        warehouse=str(row["warehouse"]),
        owner=as_text(row.get("owner")) or stack.tenant or stack.name,
        day=date.fromisoformat(str(row["day"])),
        tables=int(row.get("tables") or 0),
        files=int(row.get("files") or 0),
        stored={kind: row.get(f"bytes_{kind}") for kind in STORAGE_KINDS},
        requests=row.get("requests"),
        cu_hours=None if hours is None else Decimal(str(hours)),
        maintenance_minutes=Decimal(str(row.get("maintenance_minutes") or 0)),
        namespaces={
            name: {quantity: int(amount) for quantity, amount in as_mapping(amounts).items()}
            for name, amounts in as_mapping(row.get("limited_namespaces")).items()
        },
    )
