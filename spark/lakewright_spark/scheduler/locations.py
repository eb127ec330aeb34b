"""Tables whose storage locations overlap, so that no job may delete files by location. Pure functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import JobName
from lakewright_spark.table_identifier import TableIdentifier


def need_locations(config: CatalogConfig, jobs: Iterable[JobName]) -> bool:
    """Return whether the jobs need the locations of all tables. Lakekeeper itself refuses overlapping locations."""
    return config.kind != "lakekeeper" and any(JOBS_BY_NAME[job].owns_location for job in jobs)


def find_overlaps(
    tables: Sequence[TableFacts], unknown: Sequence[TableIdentifier] = ()
) -> Mapping[TableIdentifier, str]:
    """Return why no file of a table may be deleted by location, by table.

    Args:
        tables: Tables with their locations.
        unknown: UnreadableTable tables, whose files may be anywhere.
    """
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        reason = f"the location of {unknown[0]}{more} is unknown, since it cannot be read, and may overlap this table's"
        return {facts.table: reason for facts in tables}
    at: defaultdict[str, set[TableIdentifier]] = defaultdict(set)
    below: defaultdict[str, set[TableIdentifier]] = defaultdict(set)
    for facts in tables:
        for path in facts.locations:
            at[_normalize(path)].add(facts.table)
            for folder in _folders(_normalize(path)):
                below[folder].add(facts.table)
    overlaps: dict[TableIdentifier, str] = {}
    for facts in tables:
        location = _normalize(facts.location)
        around = (
            {table for folder in _folders(location) for table in at[folder]} if location else set[TableIdentifier]()
        )
        if overlapping := sorted(map(str, (around | below[location]) - {facts.table})):
            more = f" and {len(overlapping) - 3} more" if len(overlapping) > 3 else ""
            overlaps[facts.table] = (
                f"its location {facts.location} overlaps that of {', '.join(overlapping[:3])}{more}: "
                "give each table a location of its own"
            )
    return overlaps


def _normalize(location: str) -> str:
    return re.sub(r"^s3[an]://", "s3://", location).rstrip("/")


def _folders(location: str) -> Iterator[str]:
    """Yield the place and every folder around it, up to the bucket."""
    yield location
    while (slash := location.rfind("/")) > 0 and location[slash - 1] != "/":
        location = location[:slash]
        yield location
