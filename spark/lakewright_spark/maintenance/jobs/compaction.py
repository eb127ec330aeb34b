"""Job `compaction`: rewrite small files into large files, sorted if the policy requests it. Rows do not change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.jobs.job import DueDecision, History, JobMetrics, MaintenanceJob, due_after_change
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate, sql_map
from lakewright_spark.policies.model import CompactionPolicy, TablePolicies
from lakewright_spark.table_identifier import literal, quote_name

SMALLEST, LARGEST = 0.75, 1.8
"""Files between these fractions of the target size are not rewritten: Iceberg's defaults."""


@dataclass(frozen=True, kw_only=True)
class CompactionMetrics(JobMetrics):
    """Data files before and after, and bytes rewritten."""

    rewritten: int = 0
    added: int = 0
    bytes: int = 0
    failed: int = 0
    """Files whose group could not be written or committed. All other groups were committed."""

    @property
    def failure(self) -> str | None:
        """Return how many files could not be rewritten."""
        return f"{self.failed} files could not be rewritten; all other files were" if self.failed else None


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> CompactionMetrics:
    """Rewrite files that are too small or too large, in partitions with enough of them.

    Raises:
        PolicyRefusedError: A column of the policy does not exist, or the table has no sort order to use.
    """
    del now  # only sizes matter
    compaction = policy.compaction or CompactionPolicy()
    order = _order(opened, compaction)
    sizes = {
        "target-file-size-bytes": str(int(compaction.target_file_size)),
        "min-input-files": str(compaction.min_input_files),
    }
    files, size = _plan(opened, sizes)
    if dry_run or not files:
        return CompactionMetrics(rewritten=files, bytes=size, dry_run=dry_run)
    commits = compaction.partial_progress_commits
    values = {
        **sizes,
        "partial-progress.enabled": str(commits > 0).lower(),
        **({"partial-progress.max-commits": commits} if commits else {}),
    }
    strategy = "binpack" if compaction.strategy == "bin-pack" else "sort"
    arguments = {"strategy": literal(strategy), "options": sql_map(values)}
    sorting = {"sort_order": literal(order)} if order else {}
    row = opened.call("rewrite_data_files", **arguments, **sorting).collect()[0]
    return CompactionMetrics(
        rewritten=row.rewritten_data_files_count,
        added=row.added_data_files_count,
        bytes=row.rewritten_bytes_count,
        failed=row.failed_data_files_count,
    )


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether rows changed since the last run, and enough files have the wrong size as far as is known."""
    del now
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    policy = policies.compaction or CompactionPolicy()
    target, files, size = int(policy.target_file_size), facts.data_files, facts.data_bytes
    if files is not None and size is not None:
        if files < policy.min_input_files and size <= LARGEST * target:
            return DueDecision(
                is_due=False, reason=f"{files} data files; at least {policy.min_input_files} are compacted"
            )
        if policy.strategy == "bin-pack" and files and SMALLEST * target <= size / files <= target:
            return DueDecision(
                is_due=False, reason=f"{files} data files of {size // files} bytes each have the target size"
            )
    return due_after_change("compaction", facts, history)


JOB = MaintenanceJob(
    name="compaction", run=run, is_due=is_due, primary_only=True, waits_for_executions=True, deletes_files=True
)


def _order(opened: IcebergTable, compaction: CompactionPolicy) -> str:
    """Return the sort order as an argument of the procedure. Empty: none, or the table's own."""
    if unknown := sorted(set(compaction.columns) - opened.columns().keys()):
        raise PolicyRefusedError(f"table {opened.table}: compaction: no column {', '.join(unknown)}")
    if compaction.strategy == "sort" and not compaction.columns and opened.java.sortOrder().isUnsorted():
        raise PolicyRefusedError(
            f"table {opened.table}: compaction: expected `columns`, since the table has no sort order"
        )
    names = ", ".join(quote_name(name) for name in compaction.columns)
    return f"zorder({names})" if compaction.strategy == "z-order" else names


def _plan(opened: IcebergTable, values: Mapping[str, str]) -> tuple[int, int]:
    """Return number and bytes of the files that Iceberg's planner would rewrite."""
    planner = opened.jvm.org.apache.iceberg.actions.BinPackRewriteFilePlanner(opened.java)
    planner.init(values)
    groups = planner.plan().groups()
    try:
        sizes = [(group.inputFileNum(), group.inputFilesSizeInBytes()) for group in iterate(groups)]
    finally:
        groups.close()
    return sum(files for files, _ in sizes), sum(size for _, size in sizes)
