"""FileGroups: how many bytes of files a compaction rewrites together, and how many groups at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from lakewright_spark.policies.model import CompactionPolicy

BYTES_PER_SECOND = 2 * 2**20
"""Rate of all groups of files that are rewritten at the same time, from OpenHouse (`REWRITE_BYTES_PER_SECOND` of
OpenHouseDataLayoutStrategyGenerator). Two cores are about four times as fast; a group must be done in time on a slow
machine as well."""
_ICEBERG_GROUP_SIZE = 100 * 2**30
"""Bytes: Iceberg's default of `max-file-group-size-bytes`."""


_MOST_IN_WORK = 0.05
"""Part of a table that is in work at the same time, unless files of the target size need more."""


class FileGroups(NamedTuple):
    """Groups of files that a run rewrites."""

    size: int
    """Most bytes of the files of a group."""
    at_once: int
    """Number of groups at the same time."""


def count_cores(properties: Mapping[str, str], present: int) -> int:
    """Return the number of Spark tasks at the same time, with all executors that Spark may add while tasks wait.

    Args:
        properties: Properties of the session.
        present: Number of tasks at the same time now.

    >>> count_cores({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "6"}, 2)
    6
    >>> count_cores({}, 2)
    2
    """
    most = properties.get("spark.dynamicAllocation.maxExecutors", "")
    if properties.get("spark.dynamicAllocation.enabled") != "true" or not most.isdecimal():
        return present
    return max(int(most) * int(properties.get("spark.executor.cores", "1")), present)


def choose_groups(
    compaction: CompactionPolicy,
    timeout: timedelta,
    *,
    cores: int = 1,
    parallel_tables: int = 1,
    table_bytes: int | None = None,
) -> FileGroups:
    """Return the size of the groups of files, and how many are rewritten at the same time.

    Each core has a group. By default, the groups of all tables in work have the bytes that half the time limit rewrites
    at `BYTES_PER_SECOND`, and, unless they sort rows, at most a twentieth of the table, which is what a killed run
    repeats. A group is at least as large as a file of the target size, since smaller files would be rewritten again,
    and at most as large as Iceberg's default.

    Args:
        compaction: Policy of the table.
        timeout: Time limit of the run.
        cores: Number of Spark tasks at the same time.
        parallel_tables: Number of tables in work at the same time.
        table_bytes: Size of the table's data files, if it is known.

    >>> choose_groups(CompactionPolicy(), timedelta(hours=2), cores=2, parallel_tables=4).size // 2**20
    900
    """
    at_once = max(cores, 1)
    if compaction.max_group_size is not None:
        return FileGroups(int(compaction.max_group_size), at_once)
    size = int(timeout.total_seconds() / 2 * BYTES_PER_SECOND / (at_once * parallel_tables))
    if table_bytes is not None and compaction.strategy == "bin-pack":
        size = min(size, int(table_bytes * _MOST_IN_WORK / at_once))
    return FileGroups(min(max(size, int(compaction.target_file_size)), _ICEBERG_GROUP_SIZE), at_once)
