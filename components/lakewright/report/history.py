"""Histories of a report: storage use of the fleet by day, and maintenance runs of several documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lakewright.report.stack_documents import CommandDocuments, StackEntry
from lakewright.validation.documents import as_list, as_mapping, as_text

_SUMMED = ("live", "reclaimable")


def sum_usage(usage: CommandDocuments, present_stacks: Collection[str]) -> list[dict[str, Any]]:
    """Return live and reclaimable bytes of all tenants by day (UTC), the earliest first.

    A stack without a measurement on a day has its last value before. A partial measurement does not replace a complete
    one.

    Args:
        usage: The documents of `usage`.
        present_stacks: Stacks that exist. The values of other stacks end with their last document.
    """
    last_days = {name: entries[-1].at[:10] for name, entries in usage.entries.items() if name not in present_stacks}
    values: dict[str, Mapping[str, Any]] = {}
    points: dict[str, dict[str, Any]] = {}
    for source in usage.documents:
        for name, entry in source.stacks.items():
            _update_value(values, name, entry)
        if day := source.at[:10]:
            counted = [entry for name, entry in values.items() if day <= last_days.get(name, day)]
            points[day] = {"at": source.at, **{key: _sum_bytes(counted, f"bytes_{key}") for key in _SUMMED}}
    return list(points.values())


def _update_value(values: dict[str, Mapping[str, Any]], name: str, entry: Mapping[str, Any]) -> None:
    if entry.get("deployed") is False:
        values.pop(name, None)
    elif _read_total(entry) and (not entry.get("problem") or name not in values or values[name].get("problem")):
        values[name] = entry


def _read_total(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(as_mapping(entry.get("usage")).get("total"))


def _sum_bytes(entries: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(int(_read_total(entry).get(key) or 0) for entry in entries)


def join_runs(entries: Iterable[StackEntry]) -> list[Mapping[str, Any]]:
    """Return the maintenance runs of a stack in several documents. The later of two entries of a run counts.

    Args:
        entries: The entries of the stack, the earliest first.
    """
    runs: dict[str, Mapping[str, Any]] = {}
    for stack_entry in entries:
        for run in read_runs(stack_entry.entry):
            runs[as_text(run.get("id")) or json.dumps(run, sort_keys=True)] = run
    return list(runs.values())


def read_runs(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the runs of a stack in one document."""
    return [as_mapping(run) for run in as_list(entry.get("runs"))]
