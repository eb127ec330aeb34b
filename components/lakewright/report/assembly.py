"""Make the model of a report from its sources. The model is the JSON that the page reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lakewright_spark.times import format_json_time

from lakewright.report.levels import Level
from lakewright.report.maintenance_runs import describe_runs, sum_by_day
from lakewright.report.sources import ReportSource, SourceKind
from lakewright.report.tenant_sections import (
    describe_checks,
    describe_drift,
    describe_restrictions,
    describe_shares,
    describe_state,
    describe_usage,
    describe_verification,
    judge_tenant,
)
from lakewright.validation.documents import as_list, as_mapping, as_text

MODEL_VERSION = 1

Sources = Mapping[SourceKind, Sequence[ReportSource]]


def build_report(sources: Sequence[ReportSource], *, now: datetime, title: str = "") -> dict[str, Any]:
    """Return the model of a report.

    Args:
        sources: The sources in any order. The later of two documents of a kind counts; storage use shows them all as
            its history, and maintenance runs are joined.
        now: The time of the report.
        title: Name of the project.
    """
    by_kind: dict[SourceKind, list[ReportSource]] = {kind: [] for kind in SourceKind}
    for source in sorted(sources, key=lambda source: source.at):
        by_kind[source.kind].append(source)
    latest = {kind: _merge_stacks(by_kind[kind]) for kind in SourceKind}
    names = sorted({name for stacks in latest.values() for name in stacks})
    return {
        "version": MODEL_VERSION,
        "title": title,
        "at": format_json_time(now.replace(microsecond=0)),
        "sources": [_describe_source(kind, by_kind[kind]) for kind in SourceKind],
        "tenants": [_describe_tenant(name, latest, by_kind, now) for name in names],
        "causes": _list_causes(by_kind[SourceKind.DRIFT]),
        "history": {"usage": _sum_usage(by_kind[SourceKind.USAGE]), "maintenance": _sum_maintenance(latest)},
    }


def _merge_stacks(sources: Sequence[ReportSource]) -> dict[str, Mapping[str, Any]]:
    """Return the entry of each stack of the latest document that has the stack."""
    return {name: entry for source in sources for name, entry in source.stacks.items()}


def _describe_source(kind: SourceKind, sources: Sequence[ReportSource]) -> dict[str, Any]:
    latest = sources[-1] if sources else None
    error = latest.error if latest else ""
    return {
        "kind": kind,
        "command": f"lakewright {' '.join(kind.command)} --json",
        "origin": latest.origin if latest else "",
        "at": latest.at if latest else "",
        "stacks": len(latest.stacks) if latest else 0,
        "documents": len(sources),
        "level": Level.NONE if latest is None else Level.BAD if error else Level.OK,
        "error": error,
    }


def _describe_tenant(
    name: str,
    latest: Mapping[SourceKind, Mapping[str, Mapping[str, Any]]],
    by_kind: Sources,
    now: datetime,
) -> dict[str, Any]:
    entries = {kind: latest[kind].get(name) for kind in SourceKind}
    listing = as_mapping(entries[SourceKind.LIST])
    parts = as_mapping(listing.get("declared"))
    shares = describe_shares(parts, now)
    history = [
        (source.at, as_mapping(source.stacks[name].get("usage")))
        for source in by_kind[SourceKind.USAGE]
        if name in source.stacks
    ]
    runs = entries[SourceKind.RUNS]
    sections = {
        "state": describe_state(entries[SourceKind.LIST]),
        "drift": describe_drift(entries[SourceKind.DRIFT]),
        "checks": describe_checks(entries[SourceKind.CHECK]),
        "verify": describe_verification(entries[SourceKind.VERIFY]),
        "restrictions": describe_restrictions(entries[SourceKind.STATUS]),
        "usage": describe_usage(entries[SourceKind.USAGE], history),
        "runs": _describe_maintenance(runs),
    }
    facts = [as_mapping(entry) for entry in entries.values() if entry]
    return {
        "stack": name,
        **{key: next((text for fact in facts if (text := as_text(fact.get(key)))), "") for key in _FACTS},
        "labels": {str(label): str(value) for label, value in as_mapping(listing.get("labels")).items()},
        "resources": listing.get("resources") if listing else None,
        "updated": as_text(listing.get("last_update")) or "",
        "level": judge_tenant(sections.values(), shares),
        **sections,
        "shares": shares,
        "declared": parts or None,
    }


_FACTS = ("tenant", "owner", "environment")


def _describe_maintenance(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if entry is None or entry.get("deployed") is False:
        return None
    problem = as_text(entry.get("problem")) or ""
    described = describe_runs(_list_runs(entry))
    level = Level.WARN if problem and described["level"] is not Level.BAD else described["level"]
    return {**described, "level": level, "problems": [problem] if problem else []}


def _list_runs(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [as_mapping(run) for run in as_list(entry.get("runs"))]


def _list_causes(sources: Sequence[ReportSource]) -> list[dict[str, Any]]:
    """Return the causes of drift on several tenants of the latest document."""
    groups = as_list(sources[-1].document.get("groups")) if sources else []
    return [
        {"text": as_text(group.get("text")) or "", "stacks": [str(stack) for stack in as_list(group.get("stacks"))]}
        for group in map(as_mapping, groups)
    ]


def _sum_usage(sources: Sequence[ReportSource]) -> list[dict[str, Any]]:
    """Return live and reclaimable bytes of all tenants by the time of each document, the earliest first."""
    points: list[dict[str, Any]] = []
    for source in sources:
        totals = [as_mapping(as_mapping(entry.get("usage")).get("total")) for entry in source.stacks.values()]
        sums = {key: sum(int(total.get(f"bytes_{key}") or 0) for total in totals) for key in ("live", "reclaimable")}
        if source.at:
            points.append({"at": source.at, **sums})
    return points


def _sum_maintenance(latest: Mapping[SourceKind, Mapping[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    return sum_by_day(run for entry in latest[SourceKind.RUNS].values() for run in _list_runs(entry))
