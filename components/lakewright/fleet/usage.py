"""Storage use of many tenants by warehouse and owner, from `lakewright-spark usage`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.filesize import decimal

from lakewright.fleet.spark_reports import SparkReport, compute_exit_code
from lakewright.terminal.json_document import make_head
from lakewright.terminal.text_lines import format_table
from lakewright.validation.documents import as_list, as_mapping, as_text

COMMAND = ("usage",)
"""The command of `lakewright-spark`."""
_SUMMED = ("tables", "views", "bytes_live", "bytes_reclaimable", "files", "snapshots")


def _list_warehouses(usage: SparkReport) -> list[Mapping[str, Any]]:
    return [as_mapping(entry) for entry in as_list(usage.report.get("warehouses"))]


def sum_by_owner(usages: Iterable[SparkReport]) -> dict[str, dict[str, int]]:
    """Return the sums of all warehouses by owner; tenants own warehouses without an owner."""
    totals: dict[str, dict[str, int]] = {}
    for usage in usages:
        for entry in _list_warehouses(usage):
            owner = as_text(entry.get("owner")) or usage.stack.tenant or usage.stack.name
            total = totals.setdefault(owner, dict.fromkeys(_SUMMED, 0))
            for name in _SUMMED:
                total[name] += int(entry.get(name) or 0)
    return dict(sorted(totals.items(), key=lambda item: -item[1]["bytes_live"]))


def to_usage_json(usages: Sequence[SparkReport]) -> dict[str, Any]:
    """Return the JSON document: stacks, totals by owner, and the exit code."""
    return {
        **make_head("usage"),
        "stacks": [{**usage.to_json(), "usage": dict(usage.report) or None} for usage in usages],
        "owners": [{"owner": owner, **total} for owner, total in sum_by_owner(usages).items()],
        "exit": compute_exit_code(usages),
    }


def format_usage(usages: Sequence[SparkReport]) -> list[str]:
    """Return a table by tenant and warehouse, and a table by owner, as lines of plain text."""
    head = ("LIVE", "RECLAIMABLE", "TABLES", "FILES", "SNAPSHOTS")
    rows = [
        (usage.stack.name, str(entry.get("warehouse")), as_text(entry.get("owner")) or "-", *_format_cells(entry))
        for usage in usages
        for entry in _list_warehouses(usage)
    ]
    owners = [(owner, *_format_cells(total)) for owner, total in sum_by_owner(usages).items()]
    return [
        *format_table(("STACK", "WAREHOUSE", "OWNER", *head), rows),
        "",
        *format_table(("OWNER", *head), owners),
    ]


def _format_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    live, reclaimable = (decimal(int(entry.get(name) or 0)) for name in ("bytes_live", "bytes_reclaimable"))
    return live, reclaimable, *(str(int(entry.get(name) or 0)) for name in ("tables", "files", "snapshots"))
