"""`compaction`: small files into large ones, in order if the policy says so; no row is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.switches import Metrics, options
from lakewright_spark.maintenance.table.iceberg import IcebergTable, each
from lakewright_spark.policies.model import CompactionPolicy, TablePolicies
from lakewright_spark.table_identifier import literal, quoted

SMALLEST, LARGEST = 0.75, 1.8
"""Files between these parts of the target size are left as they are: Iceberg's own defaults."""


@dataclass(frozen=True, kw_only=True)
class CompactionMetrics(Metrics):
    """Data files before and after, and the bytes that were written anew."""

    rewritten: int = 0
    added: int = 0
    bytes: int = 0
    failed: int = 0
    """Files whose group could not be written or committed; the other groups are."""

    @property
    def failure(self) -> str | None:
        return f"{self.failed} files could not be rewritten; the others are" if self.failed else None


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> CompactionMetrics:
    """Rewrite what is too small or too large, where there are enough such files in a partition to pay.

    PolicyRefusedError if a column of the policy is not there, or the table has no order of its own to sort by.
    """
    del now  # Sizes alone decide.
    compaction = policy.compaction or CompactionPolicy()
    order = _order(opened, compaction)
    sizes = {
        "target-file-size-bytes": str(int(compaction.target_file_size)),
        "min-input-files": str(compaction.min_input_files),
    }
    files, size = _worth(opened, sizes)
    if dry_run or not files:
        return CompactionMetrics(rewritten=files, bytes=size, dry_run=dry_run)
    commits = compaction.partial_progress_commits
    values = {
        **sizes,
        "partial-progress.enabled": str(commits > 0).lower(),
        **({"partial-progress.max-commits": commits} if commits else {}),
    }
    strategy = "binpack" if compaction.strategy == "bin-pack" else "sort"
    arguments = {"strategy": literal(strategy), "options": options(values)}
    sorting = {"sort_order": literal(order)} if order else {}
    row = opened.call("rewrite_data_files", **arguments, **sorting).collect()[0]
    return CompactionMetrics(
        rewritten=row.rewritten_data_files_count,
        added=row.added_data_files_count,
        bytes=row.rewritten_bytes_count,
        failed=row.failed_data_files_count,
    )


def _order(opened: IcebergTable, compaction: CompactionPolicy) -> str:
    """The order as the procedure takes it; empty for none, or for the table's own."""
    if unknown := sorted(set(compaction.columns) - opened.columns().keys()):
        raise PolicyRefusedError(f"table {opened.table}: compaction: there is no column {', '.join(unknown)}")
    if compaction.strategy == "sort" and not compaction.columns and opened.java.sortOrder().isUnsorted():
        raise PolicyRefusedError(
            f"table {opened.table}: compaction: expected `columns` to sort by, since the table has no sort order"
        )
    names = ", ".join(quoted(name) for name in compaction.columns)
    return f"zorder({names})" if compaction.strategy == "z-order" else names


def _worth(opened: IcebergTable, values: Mapping[str, str]) -> tuple[int, int]:
    """Number and bytes of the files in Iceberg's own plan: those out of size, where there are enough of them."""
    planner = opened.jvm.org.apache.iceberg.actions.BinPackRewriteFilePlanner(opened.java)
    planner.init(values)
    groups = planner.plan().groups()
    try:
        sizes = [(group.inputFileNum(), group.inputFilesSizeInBytes()) for group in each(groups)]
    finally:
        groups.close()
    return sum(number for number, _ in sizes), sum(size for _, size in sizes)
