"""FileGroups: how many bytes of files a compaction rewrites together, and how many groups at the same time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from lakewright_spark.policies.model import LEAST_TARGETS, CompactionPolicy

BYTES_PER_SECOND = 2 * 2**20
"""Rate of all groups of files that are rewritten at the same time, from OpenHouse (`REWRITE_BYTES_PER_SECOND` of
OpenHouseDataLayoutStrategyGenerator). Two cores are about four times as fast; a group must be done in time on a slow
machine as well."""
_ICEBERG_GROUP_SIZE = 100 * 2**30
"""Bytes: Iceberg's default of `max-file-group-size-bytes`."""
_MOST_AT_ONCE = 64
"""Most groups at the same time: each is a thread of the driver and at least one Spark job."""
_EXECUTORS = "2"
"""Spark's default of `spark.executor.instances`."""
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
"""Master of a session without executors, such as `local[4]`. `local` has one core."""


_MOST_IN_WORK = 0.05
"""Part of a table that is in work at the same time, unless the least size of a group needs more."""


class FileGroups(NamedTuple):
    """Groups of files that a run rewrites."""

    size: int
    """Most bytes of the files of a group."""
    at_once: int
    """Number of groups at the same time."""


CORE_PROPERTIES = (
    "spark.master",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
)
"""Properties that `count_cores` reads."""


def count_cores(properties: Mapping[str, str], processors: int) -> int:
    """Return the number of Spark tasks at the same time, with all executors that Spark may add while tasks wait.

    Args:
        properties: Properties of the session, of which `CORE_PROPERTIES` matter.
        processors: Number of processors of the driver, which `local[*]` uses.

    >>> count_cores({"spark.master": "local[3]", "spark.default.parallelism": "200"}, 2)
    3
    >>> count_cores({"spark.master": "k8s://host", "spark.executor.instances": "4", "spark.executor.cores": "2"}, 2)
    8
    """
    if local := _LOCAL.fullmatch(properties.get("spark.master", "")):
        return processors if local[1] == "*" else int(local[1] or 1)
    executors = int(properties.get("spark.executor.instances", _EXECUTORS))
    most = properties.get("spark.dynamicAllocation.maxExecutors", "")
    if properties.get("spark.dynamicAllocation.enabled") == "true" and most.isdecimal():
        executors = max(executors, int(most))
    return executors * int(properties.get("spark.executor.cores", "1"))


def choose_groups(
    compaction: CompactionPolicy,
    timeout: timedelta,
    *,
    cores: int = 1,
    parallel_tables: int = 1,
    table_bytes: int | None = None,
) -> FileGroups:
    """Return the size of the groups of files, and how many are rewritten at the same time.

    The tables in work share the cores, and each core has a group. By default, the groups of all tables in work have the
    bytes that half the time limit rewrites at `BYTES_PER_SECOND`, and, unless they sort rows, at most a twentieth of
    the table, which is what a killed run repeats. A group has at most Iceberg's default and at least twice the target
    size: Iceberg's planner leaves a group with less than the target size and fewer than `min_input_files`.

    Args:
        compaction: Policy of the table.
        timeout: Time limit of the run.
        cores: Number of Spark tasks at the same time.
        parallel_tables: Number of tables in work at the same time.
        table_bytes: Size of the table's data files, if it is known.

    >>> choose_groups(CompactionPolicy(), timedelta(hours=2), cores=2, parallel_tables=4).size // 2**20
    1800
    """
    at_once = min(max(-(-cores // parallel_tables), 1), _MOST_AT_ONCE)
    if compaction.max_group_size is not None:
        return FileGroups(int(compaction.max_group_size), at_once)
    size = int(timeout.total_seconds() / 2 * BYTES_PER_SECOND / (at_once * parallel_tables))
    if table_bytes is not None and compaction.strategy == "bin-pack":
        size = min(size, int(table_bytes * _MOST_IN_WORK / at_once))
    return FileGroups(max(min(size, _ICEBERG_GROUP_SIZE), LEAST_TARGETS * int(compaction.target_file_size)), at_once)
