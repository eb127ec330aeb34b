"""Estimate which files compaction will rewrite, from the summaries of commits. Pure functions: no manifest is read.

A commit's summary has the number and the bytes of its files, and the number of partitions that it changed. Their means
stand for each file and each partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from lakewright_spark.iceberg_values import to_instant
from lakewright_spark.policies.model import CompactionPolicy

SMALLEST, LARGEST = 0.75, 1.8
"""Files of another size, as multiples of the target size, are rewritten: Iceberg's defaults."""
_DIGITS = len(str(2**63 - 1))


@dataclass(frozen=True)
class CommittedFiles:
    """Files that a commit added to the table, without files that a rewrite replaced."""

    committed_at: datetime
    files: int
    bytes: int
    partitions: int = 1
    """Number of partitions that the commit changed."""

    @classmethod
    def from_summary(cls, milliseconds: int, summary: Mapping[str, str]) -> CommittedFiles:
        """Return the data files of a commit."""
        files = read_number(summary, "added-data-files") or 0
        # The bytes of delete files are counted too; a commit of delete files alone adds no data.
        size = (read_number(summary, "added-files-size") or 0) if files else 0
        return cls(to_instant(milliseconds), files, size, read_number(summary, "changed-partition-count") or 1)


@dataclass(frozen=True)
class TableTotals:
    """Totals of the current snapshot."""

    data_files: int
    bytes: int
    delete_files: int = 0
    deleted_share: float = 0.0
    """Share of the rows that position deletes remove."""


class Rewrite(NamedTuple):
    """Estimated work of a compaction."""

    rewritten: int = 0
    added: int = 0
    bytes: int = 0


def read_number(summary: Mapping[str, str], key: str) -> int | None:
    """Return a number of a summary; None without a number, or if it exceeds Java's longest integer."""
    text = summary.get(key, "")
    # Python's division to a float fails for numbers of 309 digits.
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def estimate_rewrite(
    size: TableTotals, additions: Iterable[CommittedFiles], policy: CompactionPolicy, since: datetime | None
) -> Rewrite:
    """Return the files that Iceberg's planner will probably select.

    Args:
        size: Totals of the table.
        additions: Files of the commits that the table still has.
        policy: Policy of the table.
        since: Start of the last compaction (UTC); None: the table was never compacted.
    """
    new_commits = [commit for commit in additions if commit.files and (since is None or commit.committed_at >= since)]
    partitions = max((commit.partitions for commit in new_commits), default=1)
    files, total = 0, 0
    new_files, new_bytes = sum(commit.files for commit in new_commits), sum(commit.bytes for commit in new_commits)
    old_files, old_bytes = max(size.data_files - new_files, 0), max(size.bytes - new_bytes, 0)
    has_deletes = _rewrites_for_deletes(size, policy)
    for number, number_bytes in ((old_files, old_bytes), *((commit.files, commit.bytes) for commit in new_commits)):
        if number and (has_deletes or policy.rewrite_old_partitions or _has_wrong_size(number, number_bytes, policy)):
            files, total = files + number, total + number_bytes
    files, total = min(files, size.data_files), min(total, size.bytes)
    target = int(policy.target_file_size)
    groups = max(min(partitions, files), 1)
    is_enough = files >= policy.min_input_files * groups or total > target * groups
    if not files or not (is_enough or has_deletes or policy.rewrite_old_partitions):
        return Rewrite()
    return Rewrite(files, min(max(-(-total // target), groups), files), total)


def _has_wrong_size(files: int, size: int, policy: CompactionPolicy) -> bool:
    """Return whether files of this number and size are small or large on average."""
    return not SMALLEST * policy.target_file_size <= size / files <= LARGEST * policy.target_file_size


def _rewrites_for_deletes(size: TableTotals, policy: CompactionPolicy) -> bool:
    """Return whether enough delete files or deleted rows apply to a data file on average."""
    return (
        size.deleted_share >= policy.delete_ratio_threshold
        or size.delete_files >= policy.delete_file_threshold * max(size.data_files, 1)
    )
