"""Print the ranking of tables, and refuse long waits: `maintain --explain` and `--max-wait`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from lakewright_spark.cli import printing
from lakewright_spark.errors import MaintenanceFailedError
from lakewright_spark.times import format_json_time, format_time

if TYPE_CHECKING:
    from lakewright_spark.scheduler.outcome import MaintenanceOutcome
    from lakewright_spark.scheduler.plan import JobDecision, TablePlan

MAX_NAMED_JOBS = 3
"""Jobs that an error names."""
_COLUMNS = (
    "turn",
    "table",
    "waits since",
    "jobs",
    "files saved",
    "to rewrite",
    "GB-hours",
    "files per GB-hour",
    "health",
    "weight",
    "gain per GB-hour",
    "note",
)


def show_ranking(outcome: MaintenanceOutcome, now: datetime, *, as_json: bool) -> None:
    """Print the tables with due jobs in their turn, then the tables whose jobs are held back.

    Raises:
        MaintenanceFailedError: Some tables or warehouses could not be read. The rest is printed.
    """
    from lakewright_spark.scheduler.ordering import rank_key  # noqa: PLC0415  # loads PyIceberg

    tables = [table for plan in outcome.plans for table in plan.tables]
    due = sorted((table for table in tables if table.due), key=lambda table: rank_key(table.rank, now))
    held_tables = [table for table in tables if not table.due and any(one.verdict == "held" for one in table.decisions)]
    if as_json:
        print(
            json.dumps(
                {"tables": [_to_json(table) for table in due], "held": [_to_json(table) for table in held_tables]}
            )
        )
    else:
        rows = printing.columns(*_COLUMNS, fold=("table", "jobs", "note"))
        for turn, table in enumerate(due, start=1):
            rows.add_row(str(turn), *_cells(table))
        for table in held_tables:
            rows.add_row("", *_cells(table))
        printing.show(rows)
    outcome.leased_elsewhere.clear()  # a table that another runner holds is no failure of a plan
    if error := outcome.error():
        raise error


def refuse_long_waits(outcome: MaintenanceOutcome, max_wait: timedelta, now: datetime) -> None:
    """Check how long each job has been due.

    The time since the last success says less: `orphan-files` is due once a week, and an idle table needs no job.

    Raises:
        MaintenanceFailedError: It is longer than `max_wait` for some jobs.
    """
    late_jobs = sorted(
        (due_since, f"{decision.job} of {table.facts.table}", decision)
        for plan in outcome.plans
        for table in plan.tables
        for decision in table.decisions
        if decision.verdict != "not due" and now - (due_since := decision.due_since or now) > max_wait
    )
    if not late_jobs:
        return
    sentences = [
        f"{name} ({_describe_success(decision)}, due since {format_time(due_since)}"
        f"{f'; {decision.reason}' if decision.verdict == 'held' else ''})"
        for due_since, name, decision in late_jobs[:MAX_NAMED_JOBS]
    ]
    more = f"; and {len(late_jobs) - MAX_NAMED_JOBS} more" if len(late_jobs) > MAX_NAMED_JOBS else ""
    raise MaintenanceFailedError(
        f"{len(late_jobs)} jobs have been due for more than {max_wait}: {'; '.join(sentences)}{more}"
    )


def _describe_success(decision: JobDecision) -> str:
    return f"last success {format_time(decision.last_success)}" if decision.last_success else "never succeeded"


def _cells(table: TablePlan) -> list[str]:
    prediction = table.rank.prediction
    reasons = {one.reason: None for one in table.decisions if one.verdict == "held"}
    alone = ["runs alone and last, since it kills runners"] if table.rank.runs_alone else []
    if table.rank.is_suspect:
        alone = ["may have killed a runner: not beside other such tables"]
    return [
        str(table.facts.table),
        format_time(table.rank.waiting_since) if table.due else "",
        ", ".join(one.job for one in table.due),
        f"{prediction.files:,}",
        decimal(prediction.bytes),
        f"{prediction.gb_hours:.3f}",
        f"{prediction.score:,.0f}",
        str(table.rank.health.points),
        f"{table.rank.weight:g}",
        f"{table.rank.score:,.0f}",
        "; ".join([*alone, *reasons]),
    ]


def _to_json(table: TablePlan) -> dict[str, Any]:
    return {
        "table": str(table.facts.table),
        "waiting_since": format_json_time(table.rank.waiting_since) if table.due else None,
        "runs_alone": table.rank.runs_alone,
        "is_suspect": table.rank.is_suspect,
        "predicted": table.rank.prediction.to_json(),
        "files_per_gb_hour": round(table.rank.prediction.score, 3),
        "health": table.rank.health.to_json(),
        "delete_files": table.rank.delete_files,
        "weight": table.rank.weight,
        "gain_per_gb_hour": round(table.rank.score, 3),
        "jobs": [
            {
                "job": one.job,
                "verdict": one.verdict,
                "reason": one.reason,
                "predicted": one.prediction.to_json() if one.prediction else None,
            }
            for one in table.decisions
            if one.verdict != "not due"
        ],
    }
