"""Forget candidates: those that `staged-files` has dealt with, and those that have expired."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.scheduler.run_log.ops_tables import found

AT_ONCE = 50
"""Tables in the filter of one commit."""


def forget_handled_candidates(catalog: Catalog, handled: Mapping[str, datetime]) -> None:
    """Delete the rows of candidates that are done with, of many tables in one commit.

    `handled`: until when candidates were found that are done with, by the table's UUID. Raises what PyIceberg raises.
    """
    table = found(catalog, CANDIDATES.name) if handled else None
    uuids = list(handled)
    for start in range(0, len(uuids) if table else 0, AT_ONCE):
        assert table
        each = (
            f"(table_uuid = '{uuid}' AND first_seen <= '{handled[uuid].isoformat()}')"
            for uuid in uuids[start : start + AT_ONCE]
        )
        table.refresh().delete(" OR ".join(each))
