"""Forget candidates that no run has deleted for long: those of tables that are gone would stay for ever."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pyiceberg.catalog import Catalog

from lakewright_spark.maintenance.candidates import CANDIDATES
from lakewright_spark.maintenance.ops_policies import CANDIDATES_KEPT
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.ops import found


def forget_old_candidates(catalog: Catalog, histories: Mapping[str, History], now: datetime) -> bool:
    """Delete the rows of candidates that were found before the bound, in one commit; return whether there were any.

    A file that is still there becomes a candidate again, so that nothing is deleted sooner. Raises what PyIceberg
    raises.
    """
    limit = now - timedelta(days=CANDIDATES_KEPT)
    if not any(one.oldest_candidate and one.oldest_candidate < limit for one in histories.values()):
        return False
    if (table := found(catalog, CANDIDATES.name)) is not None:
        table.delete(f"first_seen < '{limit.isoformat()}'")
    return True
