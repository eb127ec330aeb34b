"""Cost and gain of maintenance runs: seconds, files that a run removed, and a phrase from its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.filesize import decimal

from lakewright.report.levels import Level
from lakewright.terminal.text_lines import plural
from lakewright.validation.documents import as_mapping, as_text

MOST_RUNS = 12
"""Runs of a tenant that the page lists, the latest first."""
_FAILED_STATES = ("FAILED", "CANCELLED")

Metrics = Mapping[str, Any]


def _count(metrics: Metrics, *names: str) -> int:
    return sum(int(value) for name in names if isinstance(value := metrics.get(name), int | float))


def _describe_rewrite(metrics: Metrics) -> str:
    rewritten, added = _count(metrics, "rewritten"), _count(metrics, "added")
    size = f", {decimal(_count(metrics, 'bytes'))} read" if metrics.get("bytes") else ""
    return f"{plural(rewritten, 'file')} rewritten to {added}{size}" if rewritten else ""


def _describe_retention(metrics: Metrics) -> str:
    files = _count(metrics, "files")
    return f"{plural(files, 'file')}, {decimal(_count(metrics, 'bytes'))} deleted" if files else ""


def _describe_expiration(metrics: Metrics) -> str:
    files = _count(metrics, "data_files", "delete_files", "manifests")
    snapshots = _count(metrics, "snapshots")
    return f"{plural(snapshots, 'snapshot')} expired, {plural(files, 'file')} deleted" if snapshots else ""


def _describe_staged_files(metrics: Metrics) -> str:
    deleted, waiting = _count(metrics, "deleted"), _count(metrics, "waiting")
    texts = [f"{plural(deleted, 'file')} deleted"] if deleted else []
    return ", ".join(texts + ([f"{waiting} waiting"] if waiting else []))


def _describe_orphan_files(metrics: Metrics) -> str:
    new = _count(metrics, "new")
    return f"{plural(new, 'orphan file')} staged for deletion" if new else ""


_GAINS: dict[str, tuple[Callable[[Metrics], str], Callable[[Metrics], int]]] = {
    "compaction": (_describe_rewrite, lambda metrics: _count(metrics, "rewritten") - _count(metrics, "added")),
    "rewrite-manifests": (_describe_rewrite, lambda metrics: _count(metrics, "rewritten") - _count(metrics, "added")),
    "retention": (_describe_retention, lambda metrics: _count(metrics, "files")),
    "snapshot-expiration": (
        _describe_expiration,
        lambda metrics: _count(metrics, "data_files", "delete_files", "manifests"),
    ),
    "staged-files": (_describe_staged_files, lambda metrics: _count(metrics, "deleted")),
    "orphan-files": (_describe_orphan_files, lambda _: 0),
}
"""By job: the phrase of the gain, and the number of files that a run removed. `ops.job_runs` has the metrics."""


def describe_gain(job: str, metrics: Metrics) -> str:
    """Return the gain of a run in a phrase; empty if it has none.

    >>> describe_gain("compaction", {"rewritten": 40, "added": 2, "bytes": 12_000_000})
    '40 files rewritten to 2, 12.0 MB read'
    """
    return "" if metrics.get("dry_run") or job not in _GAINS else _GAINS[job][0](metrics)


def count_removed_files(job: str, metrics: Metrics) -> int:
    """Return the number of files that a run removed from a table, net of the files that it added."""
    return 0 if metrics.get("dry_run") or job not in _GAINS else max(0, _GAINS[job][1](metrics))


def describe_runs(runs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the runs of a tenant for the page, the latest first, with their sums.

    Args:
        runs: Runs as `lakewright-spark runs list --json` prints them.
    """
    latest = sorted(map(_describe_run, runs), key=lambda run: run["at"], reverse=True)
    failed = [run for run in latest if run["state"] in _FAILED_STATES]
    return {
        "level": Level.BAD if failed else Level.OK if latest else Level.NONE,
        "last": latest[0]["at"] if latest else "",
        "count": len(latest),
        "failed": len(failed),
        "seconds": round(sum(run["seconds"] for run in latest), 1),
        "removed_files": sum(run["removed_files"] for run in latest),
        "items": latest[:MOST_RUNS],
    }


def _describe_run(run: Mapping[str, Any]) -> dict[str, Any]:
    job, metrics = as_text(run.get("job")) or "", as_mapping(run.get("metrics"))
    seconds = run.get("seconds")
    return {
        "at": as_text(run.get("finished_at")) or as_text(run.get("queued_at")) or "",
        "job": job,
        "table": as_text(run.get("table")) or "",
        "state": as_text(run.get("state")) or "",
        "reason": as_text(run.get("reason")) or "",
        "seconds": round(float(seconds), 1) if isinstance(seconds, int | float) else 0.0,
        "gain": describe_gain(job, metrics),
        "removed_files": count_removed_files(job, metrics),
    }


def sum_by_day(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return cost and gain of all runs by day (UTC), the earliest first, as the page's chart shows them."""
    days: dict[str, dict[str, Any]] = {}
    for run in map(_describe_run, runs):
        if day := run["at"][:10]:
            total = days.setdefault(day, {"day": day, "seconds": 0.0, "removed_files": 0, "runs": 0})
            total["seconds"] = round(total["seconds"] + run["seconds"], 1)
            total["removed_files"] += run["removed_files"]
            total["runs"] += 1
    return [days[day] for day in sorted(days)]
