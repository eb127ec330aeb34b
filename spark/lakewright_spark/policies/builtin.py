"""The tables of namespace `ops` that this package keeps for itself, and the policies that bound them."""

from __future__ import annotations

from collections.abc import Mapping

from lakewright_spark.policies.model import HistoryPolicy, MaintenanceSwitches, RetentionPolicy, TablePolicies
from lakewright_spark.table_identifier import TableIdentifier

OPS = "ops"
JOB_RUNS, LEASE = "job_runs", "maintenance_lease"
TABLE_STATISTICS, PARTITION_STATISTICS, COMMIT_STATISTICS = (
    "table_statistics",
    "partition_statistics",
    "commit_statistics",
)
ORPHAN_CANDIDATES = "orphan_candidates"
DAILY_USAGE = "daily_usage"
COMPUTE_USAGE = "compute_usage"

COMMITS_KEPT = 90
"""Days after which a commit is no longer kept in `ops.commit_statistics`, nor added to it."""
CANDIDATES_KEPT = 90
"""Days after which a candidate is forgotten that no run has deleted, for example because its table was dropped.

A table whose `staged_files` policy waits longer keeps its candidates longer.
"""

_HISTORY = HistoryPolicy(max_age_days=1)
_SWITCHES = MaintenanceSwitches(disabled_jobs=("statistics",))
"""Statistics of statistics would grow with themselves."""


def _build_policies(days: int, column: str, pattern: str | None = None) -> TablePolicies:
    retention = RetentionPolicy(keep=days, unit="day", column=column, pattern=pattern)
    return TablePolicies(retention=retention, history=_HISTORY, maintenance=_SWITCHES)


OWN_POLICIES: Mapping[str, TablePolicies] = {
    JOB_RUNS: _build_policies(90, "day", ""),
    LEASE: TablePolicies(
        history=_HISTORY,
        maintenance=MaintenanceSwitches(disabled_jobs=("compaction", "rewrite-manifests", "statistics")),
    ),
    TABLE_STATISTICS: _build_policies(400, "collected_at"),
    PARTITION_STATISTICS: _build_policies(30, "collected_at"),
    COMMIT_STATISTICS: _build_policies(COMMITS_KEPT, "committed_at"),
    # The scheduler drops old days itself: candidates may have to wait longer than a number of days.
    ORPHAN_CANDIDATES: TablePolicies(history=_HISTORY, maintenance=_SWITCHES),
    # The writer of a row drops old months itself.
    DAILY_USAGE: TablePolicies(history=_HISTORY, maintenance=_SWITCHES),
    COMPUTE_USAGE: TablePolicies(history=_HISTORY, maintenance=_SWITCHES),
}
"""By the table's name. The table's own properties win; patterns of the tenant do not reach these tables."""


def is_own(table: TableIdentifier) -> bool:
    """Return whether this package made the table for itself."""
    return table.namespace == (OPS,) and table.name in OWN_POLICIES


def own_policies(table: TableIdentifier) -> TablePolicies | None:
    """Return the policies of one of this package's own tables; None for others."""
    return OWN_POLICIES[table.name] if is_own(table) else None
