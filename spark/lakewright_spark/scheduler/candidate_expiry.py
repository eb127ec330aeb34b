"""Which orphan candidates no job will deal with, from a plan. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from lakewright_spark.policies.builtin import CANDIDATES_KEPT
from lakewright_spark.policies.model import StagedFilesPolicy
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.plan import TablePlan, WarehousePlan

MARGIN = 30
"""Days for which candidates that are due are kept at least: a run may come late, or be held."""


def expired_candidates(
    plan: WarehousePlan, histories: Mapping[str, History], now: datetime, *, is_complete: bool
) -> dict[str, datetime]:
    """Return up to when candidates were found that are to be forgotten, by the table's UUID.

    A file that is still there becomes a candidate again, so that nothing is deleted sooner. Candidates of a table that
    is due for `staged-files` stay: the plan was made with them.

    Args:
        plan: What is to be done in the warehouse.
        histories: What the plan was made with, by the table's UUID.
        now: The instant (UTC) that ages are counted from.
        is_complete: Whether the plan is of all tables, so that a table that is not in it is gone. Otherwise candidates
            of tables that are not in it stay.
    """
    planned = {one.facts.uuid: one for one in plan.tables}
    expired: dict[str, datetime] = {}
    for uuid, history in histories.items():
        table = planned.get(uuid)
        if table is None and (plan.problems or not is_complete):
            continue  # it may be one that could not be read, or that nobody asked for
        if table is not None and any(one.job == "staged-files" for one in table.due):
            continue
        limit = now - timedelta(days=_days_kept(table))
        if history.oldest_candidate and history.oldest_candidate < limit:
            expired[uuid] = limit
    return expired


def _days_kept(table: TablePlan | None) -> int:
    policy = (table.policies.staged_files if table else None) or StagedFilesPolicy()
    return max(CANDIDATES_KEPT, policy.older_than_days + MARGIN)
