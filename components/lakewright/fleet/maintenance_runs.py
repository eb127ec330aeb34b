"""Maintenance runs of many tenants, from `lakewright-spark runs list`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lakewright_spark.times import format_json_time_as_text

from lakewright.fleet.spark_reports import SparkReport, compute_exit_code
from lakewright.terminal.json_document import make_head
from lakewright.terminal.text_lines import format_table
from lakewright.validation.documents import as_list, as_mapping

COMMAND = ("runs", "list")
"""The command of `lakewright-spark`."""


def list_runs(report: SparkReport) -> list[Mapping[str, Any]]:
    """Return the runs of a tenant, first queued first."""
    return [as_mapping(run) for run in as_list(report.report.get("runs"))]


def to_runs_json(reports: Sequence[SparkReport]) -> dict[str, Any]:
    """Return the JSON document: the runs of each stack, and the exit code."""
    return {
        **make_head("runs"),
        "stacks": [{**report.to_json(), "runs": list_runs(report)} for report in reports],
        "exit": compute_exit_code(reports),
    }


def format_runs(reports: Sequence[SparkReport]) -> list[str]:
    """Return a table with the number of runs by state of each tenant as lines of plain text."""
    rows: list[tuple[str, ...]] = []
    for report in reports:
        runs = list_runs(report)
        states = Counter(str(run.get("state")).lower() for run in runs)
        seconds = sum(float(run.get("seconds") or 0) for run in runs)
        last = max((str(run.get("queued_at") or "") for run in runs), default="")
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        rows.append((report.stack.name, format_json_time_as_text(last) or "-", f"{seconds:.1f}", counts or "no runs"))
    return format_table(("STACK", "LAST RUN", "SECONDS", "RUNS"), rows)
