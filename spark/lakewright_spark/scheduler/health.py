"""Health of a table: how far small files and deletes slow its readers down. Pure functions.

The points follow the health score of Amoro (`CommonPartitionEvaluator.getHealthScore`, amoro commit 01dd8dd7): 40 for
file sizes, 40 for equality deletes and 20 for position deletes. Amoro computes them by partition, from all files. Here
they come from the summary of the last commit, and the limits from the table's policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.rewrite_estimate import SMALLEST
from lakewright_spark.policies.model import CompactionPolicy

FILE_SIZE_POINTS, EQUALITY_DELETE_POINTS, POSITION_DELETE_POINTS = 40, 40, 20


@dataclass(frozen=True)
class Health:
    """Points of a table. A table without small files and deletes has all of them."""

    file_sizes: int = FILE_SIZE_POINTS
    equality_deletes: int = EQUALITY_DELETE_POINTS
    position_deletes: int = POSITION_DELETE_POINTS

    @property
    def points(self) -> int:
        """Return the points out of 100."""
        return self.file_sizes + self.equality_deletes + self.position_deletes

    @property
    def factor(self) -> float:
        """Return 1 for a healthy table, up to 2 for a table without points."""
        return 2 - self.points / 100

    def to_json(self) -> dict[str, int]:
        """Return the points for JSON."""
        return {
            "points": self.points,
            "file_sizes": self.file_sizes,
            "equality_deletes": self.equality_deletes,
            "position_deletes": self.position_deletes,
        }


def compute_health(facts: TableFacts, policy: CompactionPolicy) -> Health:
    """Return the points of a table.

    A small table costs its readers little. So it loses fewer points, and a table with one file loses none. Equality
    deletes cost all their points at half of the deleted rows of position deletes, as in Amoro.
    """
    files, size = facts.data_files or 0, facts.data_bytes or 0
    smallest = SMALLEST * int(policy.target_file_size)
    if files <= 1:
        return Health()
    loss = _limit_share(files, policy.min_input_files) * _limit_share(size, smallest)

    def compute_points(points: int, penalty: float) -> int:
        return math.ceil(points - loss * points * penalty)

    limit = policy.delete_ratio_threshold
    return Health(
        compute_points(FILE_SIZE_POINTS, 1 - _limit_share(size / files, smallest)),
        compute_points(EQUALITY_DELETE_POINTS, _limit_share(facts.equality_deleted_share, limit / 2)),
        compute_points(POSITION_DELETE_POINTS, _limit_share(facts.deleted_share, limit)),
    )


def _limit_share(value: float, limit: float) -> float:
    """Return the value as a share of its limit, at most 1."""
    return min(value, limit) / limit if limit > 0 else float(value > 0)
