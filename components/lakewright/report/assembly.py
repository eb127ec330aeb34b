"""Make the model of a report from its sources. The model is the JSON that the page reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from lakewright_spark.times import format_json_time

from lakewright.report.history import join_runs, read_runs, sum_usage
from lakewright.report.levels import Level, find_worst
from lakewright.report.maintenance_runs import describe_runs, sum_by_day
from lakewright.report.sources import ReportSource, SourceKind
from lakewright.report.stack_documents import CommandDocuments, find_stacks, group_sources
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

DocumentsByKind = Mapping[SourceKind, CommandDocuments]


def build_report(sources: Sequence[ReportSource], *, now: datetime, title: str = "") -> dict[str, Any]:
    """Return the model of a report.

    Args:
        sources: The sources in any order. The latest document of a kind that has a stack counts for it; storage use
            shows all documents as its history, and maintenance runs are joined. Stacks that a collected `list` lacks
            are left out.
        now: The time of the report.
        title: Name of the project.
    """
    by_kind = group_sources(sources)
    stacks = find_stacks(by_kind)
    present_stacks = {name for name, missing_since in stacks.items() if not missing_since}
    usage, runs = by_kind[SourceKind.USAGE], by_kind[SourceKind.RUNS]
    return {
        "version": MODEL_VERSION,
        "title": title,
        "at": format_json_time(now.replace(microsecond=0)),
        "sources": [_describe_source(documents, stacks) for documents in by_kind.values()],
        "tenants": [_describe_tenant(name, missing_since, by_kind, now) for name, missing_since in stacks.items()],
        "causes": _list_causes(by_kind[SourceKind.DRIFT], stacks),
        "history": {
            "usage": sum_usage(usage, present_stacks),
            "maintenance": sum_by_day(run for name in stacks for run in join_runs(runs.entries.get(name, ()))),
        },
    }


def _describe_source(documents: CommandDocuments, stacks: Collection[str]) -> dict[str, Any]:
    kind, failures, latest = documents.kind, documents.failures, documents.documents[-1:]
    page_sources = [*failures, *latest]
    return {
        "kind": kind,
        "command": f"lakewright {' '.join(kind.command)} --json",
        "origin": page_sources[0].origin if page_sources else "",
        "at": documents.latest_time,
        "stacks": sum(name in documents.entries for name in stacks),
        "documents": len(documents.sources),
        "level": Level.BAD if failures else Level.OK if latest else Level.NONE,
        "error": "; ".join(dict.fromkeys(source.error for source in failures)),
    }


def _describe_tenant(name: str, missing_since: str, by_kind: DocumentsByKind, now: datetime) -> dict[str, Any]:
    entries = {kind: documents.get_entry(name) for kind, documents in by_kind.items()}
    listing = as_mapping(entries[SourceKind.LIST])
    parts = as_mapping(listing.get("declared"))
    shares = describe_shares(parts, now)
    sections = _describe_sections(name, missing_since, by_kind, entries)
    facts = [as_mapping(entry) for entry in entries.values() if entry]
    return {
        "stack": name,
        **{key: next((text for fact in facts if (text := as_text(fact.get(key)))), "") for key in _FACTS},
        "labels": {str(label): str(value) for label, value in as_mapping(listing.get("labels")).items()},
        "resources": listing.get("resources") if listing else None,
        "updated": as_text(listing.get("last_update")) or "",
        "missing_since": missing_since,
        "level": judge_tenant(sections.values(), shares),
        **sections,
        "shares": shares,
        "declared": parts or None,
    }


_FACTS = ("tenant", "owner", "environment")


def _describe_sections(
    name: str,
    missing_since: str,
    by_kind: DocumentsByKind,
    entries: Mapping[SourceKind, Mapping[str, Any] | None],
) -> dict[str, Any]:
    """Return the sections of a tenant. Results before a later run have its time as `as_of`."""
    usage = by_kind[SourceKind.USAGE].entries.get(name, [])
    history = [(measurement.at, as_mapping(measurement.entry.get("usage"))) for measurement in usage]
    state = describe_state(entries[SourceKind.LIST])
    sections = {
        "state": (SourceKind.LIST, _mark_missing(state) if missing_since else state),
        "drift": (SourceKind.DRIFT, describe_drift(entries[SourceKind.DRIFT])),
        "checks": (SourceKind.CHECK, describe_checks(entries[SourceKind.CHECK])),
        "verify": (SourceKind.VERIFY, describe_verification(entries[SourceKind.VERIFY])),
        "restrictions": (SourceKind.STATUS, describe_restrictions(entries[SourceKind.STATUS])),
        "usage": (SourceKind.USAGE, describe_usage(entries[SourceKind.USAGE], history)),
        "runs": (SourceKind.RUNS, _describe_maintenance(name, by_kind[SourceKind.RUNS])),
    }
    return {
        key: section and {**section, "as_of": by_kind[kind].get_age_note(name)}
        for key, (kind, section) in sections.items()
    }


def _mark_missing(state: Mapping[str, Any]) -> dict[str, Any]:
    level = find_worst([Level(state["level"]), Level.WARN])
    return {**state, "level": level, "text": f"not in the latest list: {state['text']}"}


def _describe_maintenance(name: str, runs: CommandDocuments) -> dict[str, Any] | None:
    """Return the runs of a tenant in all documents. Its latest document alone decides the level."""
    entry = runs.get_entry(name)
    if entry is None or entry.get("deployed") is False:
        return None
    problem = as_text(entry.get("problem")) or ""
    joined_runs = join_runs(runs.entries[name])
    level = describe_runs(read_runs(entry))["level"]
    if problem and level is not Level.BAD:
        level = Level.WARN
    return {**describe_runs(joined_runs), "level": level, "problems": [problem] if problem else []}


def _list_causes(drift: CommandDocuments, stacks: Collection[str]) -> list[dict[str, Any]]:
    """Return the causes of drift on several tenants of the latest document, with the stacks of the report."""
    groups = as_list(drift.documents[-1].document.get("groups")) if drift.documents else []
    causes = [
        {
            "text": as_text(group.get("text")) or "",
            "stacks": [str(stack) for stack in as_list(group.get("stacks")) if stack in stacks],
        }
        for group in map(as_mapping, groups)
    ]
    return [cause for cause in causes if cause["stacks"]]
