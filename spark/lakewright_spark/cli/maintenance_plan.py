"""What `lakewright-spark maintain --plan` prints: each job of each table, whether it is due, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lakewright_spark.cli import printing

if TYPE_CHECKING:
    from lakewright_spark.scheduler.outcome import Outcome
    from lakewright_spark.scheduler.plan import TablePlan


def show(outcome: Outcome, *, as_json: bool) -> None:
    """Print the plan, and raise what kept tables or warehouses from being planned.

    Raises:
        MaintenanceFailedError: Some tables or warehouses could not be read; the others are printed.
    """
    tables = _tables(outcome)
    problems = {str(table): reason for table, reason in outcome.problems.items()}
    if as_json:
        found: list[dict[str, Any]] = [
            {
                "table": str(one.facts.table),
                "jobs": [{"job": each.job, "verdict": each.verdict, "reason": each.reason} for each in one.decisions],
            }
            for one in tables
        ]
        print(json.dumps({"tables": found, "undecided": problems, "held": outcome.held}))
    else:
        _print(tables, problems)
        for sentence in outcome.held.values():
            printing.complain(sentence)
    outcome.held.clear()  # of a plan, no failure
    if error := outcome.error():
        raise error


def _print(tables: list[TablePlan], problems: dict[str, str]) -> None:
    for one in tables:
        print(one.facts.table)
        for each in one.decisions:
            print(f"  {each.verdict:<7}  {each.job}: {each.reason}")
    for table, reason in problems.items():
        print(f"{table}\n  unknown  {reason}")
    due = sum(len(one.due) for one in tables)
    print(f"{len(tables) + len(problems)} tables, {due} jobs are due")


def _tables(outcome: Outcome) -> list[TablePlan]:
    """Return the plans of the user's tables: those that maintenance keeps for itself are its own affair."""
    from lakewright_spark.policies.builtin import is_own  # noqa: PLC0415  # loads PySpark

    return [one for plan in outcome.plans for one in plan.tables if not is_own(one.facts.table)]
