"""Forget candidates: those that `staged-files` has dealt with, and those of tables that are gone, after a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pyiceberg.catalog import Catalog

from lakewright_spark.maintenance.candidates import CANDIDATES
from lakewright_spark.maintenance.ops_policies import CANDIDATES_KEPT
from lakewright_spark.scheduler.due import History
from lakewright_spark.scheduler.ops import found

AT_ONCE = 50
"""Tables in the filter of one commit."""


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


def forget_handled_candidates(catalog: Catalog, handled: Mapping[str, datetime]) -> None:
    """Delete the rows of candidates that `staged-files` has dealt with, of many tables in one commit.

    `handled`: until when candidates were found that are done with, by the table's UUID. Raises what PyIceberg raises.
    """
    table = found(catalog, CANDIDATES.name)
    uuids = list(handled)
    for start in range(0, len(uuids) if table else 0, AT_ONCE):
        assert table
        each = (
            f"(table_uuid = '{uuid}' AND first_seen <= '{handled[uuid].isoformat()}')"
            for uuid in uuids[start : start + AT_ONCE]
        )
        table.refresh().delete(" OR ".join(each))
