"""Estimate which files compaction will rewrite, from the summaries of commits. Pure functions: no manifest is read.

A commit's summary has the number and the bytes of its files, and the number of partitions that it changed. Their means
stand for each file and each partition. The last compaction is the exception: it left files of the target size and one
smaller file in each partition, and only the smaller file is rewritten with new files.
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
    equality_deletes: int = 0
    deleted_share: float = 0.0
    """Share of the rows that position deletes remove."""
    partitions: int = 1
    """Number of partitions, as far as commits of the table show it."""
    commits_since: datetime | None = None
    """When the oldest known commit was made (UTC); earlier commits have expired. None: all commits are known."""


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
    if since is not None and not (has_deletes or policy.replaces_old_partitions):
        all_partitions = max(size.partitions, partitions, 1)
        if size.commits_since is not None and size.commits_since > since:
            partitions = all_partitions
            old_files, old_bytes = _leave_full_files(old_files, old_bytes, partitions, policy)
        else:
            share = partitions / all_partitions if new_commits else 0.0
            old_files, old_bytes = _select_remaining(old_files, old_bytes, all_partitions, share, policy)
    for number, number_bytes in ((old_files, old_bytes), *((commit.files, commit.bytes) for commit in new_commits)):
        if number and (has_deletes or policy.replaces_old_partitions or _has_wrong_size(number, number_bytes, policy)):
            files, total = files + number, total + number_bytes
    files, total = min(files, size.data_files), min(total, size.bytes)
    target = int(policy.target_file_size)
    groups = max(min(partitions, files), 1)
    is_enough = files >= policy.min_input_files * groups or total > target * groups
    if not files or not (is_enough or has_deletes or policy.replaces_old_partitions):
        return Rewrite()
    return Rewrite(files, min(max(-(-total // target), groups), files), total)


def _leave_full_files(files: int, size: int, partitions: int, policy: CompactionPolicy) -> tuple[int, int]:
    """Return number and bytes of all files but the full files of the last compaction, whose number the bytes tell.

    Some of the files are newer, but their commits have expired.
    """
    target = int(policy.target_file_size)
    full_files = partitions * (size // (partitions * target)) if policy.strategy == "bin-pack" else 0
    if full_files >= files:
        return files, size
    return files - full_files, size - full_files * target


def _select_remaining(
    files: int, size: int, partitions: int, share: float, policy: CompactionPolicy
) -> tuple[int, int]:
    """Return number and bytes of the files that the last compaction left small, in partitions with new files.

    Args:
        files: Number of files that the last compaction wrote or left.
        size: Bytes of these files.
        partitions: Number of partitions.
        share: Share of the partitions that have new files.
        policy: Policy of the table.
    """
    target = int(policy.target_file_size)
    if size > LARGEST * target * files:
        return files, size  # the target size was larger then
    is_packed = policy.strategy == "bin-pack"  # sorted files of a partition have a similar size
    full_files = max(files - partitions, 0)
    if is_packed and size >= full_files * target:
        files, size = files - full_files, size - full_files * target
    if not files or not _has_wrong_size(files, size, policy):
        return 0, 0
    selected = min(round(files * share), files)
    if is_packed:
        # A partition with more small files than this, or with more bytes in them, has been compacted.
        most = max(min(policy.min_input_files - 1, target * files // max(size, 1)), 1)
        selected = min(selected, round(partitions * share) * most)
    return selected, selected * size // files


def _has_wrong_size(files: int, size: int, policy: CompactionPolicy) -> bool:
    """Return whether files of this number and size are small or large on average."""
    return not SMALLEST * policy.target_file_size <= size / files <= LARGEST * policy.target_file_size


def rewrites_whole_table(equality_deletes: int, delete_files: int, size: int, policy: CompactionPolicy) -> bool:
    """Return whether a compaction rewrites all files of a table, which removes its equality deletes.

    A delete file with equality deletes remains as long as its partition has an older data file, whether or not the
    deletes apply to it. So a small table is rewritten as a whole.

    Args:
        equality_deletes: Number of equality deletes.
        delete_files: Number of delete files of each kind.
        size: Bytes of all files.
        policy: Policy of the table.
    """
    is_small = policy.where is None and size <= LARGEST * policy.target_file_size
    return is_small and equality_deletes > 0 and delete_files >= policy.equality_delete_threshold


def _rewrites_for_deletes(size: TableTotals, policy: CompactionPolicy) -> bool:
    """Return whether enough deletes apply to a data file on average. Equality deletes may apply to each file."""
    return (
        size.deleted_share >= policy.delete_ratio_threshold
        or size.delete_files >= policy.delete_file_threshold * (1 if size.equality_deletes else max(size.data_files, 1))
        or rewrites_whole_table(size.equality_deletes, size.delete_files, size.bytes, policy)
    )
