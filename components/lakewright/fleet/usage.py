"""Storage use of many tenants by warehouse and owner, from `lakewright-spark usage`. No Spark runs.

One process reads the tables of all tenants with the identity of their jobs: the catalog configuration of each stack
names it. It needs PyIceberg (`lakewright-spark[jobs]`), and the secrets that the configurations refer to.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from rich.filesize import decimal

from lakewright.fleet.selection import SelectedStack
from lakewright.terminal.text_lines import format_table
from lakewright.validation.documents import as_list, as_mapping, as_text

_SUMMED = ("tables", "views", "bytes_live", "bytes_reclaimable", "files", "snapshots")


@dataclass(frozen=True)
class StackUsage:
    """The storage use of one tenant."""

    stack: SelectedStack
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Output of `lakewright-spark usage --json`; empty if nothing could be read."""
    problem: str = ""
    """Parts that could not be read, and the reasons."""
    is_deployed: bool = True
    """Whether the backend has the stack. A missing stack is not a problem."""

    @property
    def warehouses(self) -> list[Mapping[str, Any]]:
        """The entries of the warehouses."""
        return [as_mapping(entry) for entry in as_list(self.report.get("warehouses"))]

    def to_json(self) -> dict[str, Any]:
        """Return the tenant's entry in the JSON document."""
        return {
            "stack": self.stack.name,
            "tenant": self.stack.tenant,
            "environment": self.stack.environment,
            "labels": self.stack.labels,
            "problem": self.problem,
            "deployed": self.is_deployed,
            "usage": dict(self.report) or None,
        }


def measure_usage(
    stacks: Sequence[SelectedStack],
    read_config: Callable[[str], CatalogConfig],
    expected: tuple[type[Exception], ...],
    absent: Collection[str] = (),
) -> list[StackUsage]:
    """Return the storage use of stacks, in their order.

    Args:
        stacks: The stacks.
        read_config: Returns the catalog configuration of a stack.
        expected: Errors of `read_config` that are problems of one stack.
        absent: Names of stacks that the backend does not have.
    """
    usages: dict[str, StackUsage] = {}
    by_bundle: dict[str, dict[str, CatalogConfig]] = {}
    for stack in stacks:
        if stack.name in absent:
            usages[stack.name] = StackUsage(stack, is_deployed=False)
            continue
        try:
            config = read_config(stack.name)
        except expected as error:
            usages[stack.name] = StackUsage(stack, problem=str(error))
        else:
            # A process trusts one bundle of certificate authorities.
            by_bundle.setdefault(str(config.ca_bundle or ""), {})[stack.name] = config
    for configs in by_bundle.values():
        reports = _run_usage(configs)
        for stack in stacks:
            if stack.name in configs:
                usages[stack.name] = _create_usage(stack, reports)
    return [usages[stack.name] for stack in stacks]


def _run_usage(configs: Mapping[str, CatalogConfig]) -> dict[str, Mapping[str, Any]]:
    """Return the lines of `lakewright-spark usage` by stack; under an empty name why it failed as a whole."""
    with tempfile.TemporaryDirectory(prefix="lakewright-") as name:
        folder = Path(name)
        for stack, config in configs.items():
            (folder / f"{stack}.json").write_text(config.to_json(), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "lakewright_spark.cli", "usage", "--configs", name, "--json"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [as_mapping(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    reports = {str(line.get("config")): line for line in lines}
    last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    reason = f"`lakewright-spark usage` failed: {last}. It needs PyIceberg: install `lakewright-spark[jobs]`"
    return {"": {"error": reason}, **reports}


def _create_usage(stack: SelectedStack, reports: Mapping[str, Mapping[str, Any]]) -> StackUsage:
    line = reports.get(stack.name, reports[""])
    report = {key: value for key, value in line.items() if key not in ("config", "error")}
    return StackUsage(stack, report, as_text(line.get("error")) or "")


def sum_by_owner(usages: Iterable[StackUsage]) -> dict[str, dict[str, int]]:
    """Return the sums of all warehouses by owner; tenants own warehouses without an owner."""
    totals: dict[str, dict[str, int]] = {}
    for usage in usages:
        for entry in usage.warehouses:
            owner = as_text(entry.get("owner")) or usage.stack.tenant or usage.stack.name
            total = totals.setdefault(owner, dict.fromkeys(_SUMMED, 0))
            for name in _SUMMED:
                total[name] += int(entry.get(name) or 0)
    return dict(sorted(totals.items(), key=lambda item: -item[1]["bytes_live"]))


def to_usage_json(usages: Sequence[StackUsage]) -> dict[str, Any]:
    """Return the JSON document: stacks, totals by owner, and the exit code."""
    return {
        "version": 1,
        "stacks": [usage.to_json() for usage in usages],
        "owners": [{"owner": owner, **total} for owner, total in sum_by_owner(usages).items()],
        "exit": compute_exit_code(usages),
    }


def compute_exit_code(usages: Iterable[StackUsage]) -> int:
    """Return 1 if something could not be read, else 0."""
    return int(any(usage.problem for usage in usages))


def format_usage(usages: Sequence[StackUsage]) -> list[str]:
    """Return a table by tenant and warehouse, and a table by owner, as lines of plain text."""
    head = ("LIVE", "RECLAIMABLE", "TABLES", "FILES", "SNAPSHOTS")
    rows = [
        (usage.stack.name, str(entry.get("warehouse")), as_text(entry.get("owner")) or "-", *_format_cells(entry))
        for usage in usages
        for entry in usage.warehouses
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
