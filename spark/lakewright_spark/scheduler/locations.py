"""Tables whose places in the store overlap: what is no file of the one may be a file of the other. Pure functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import Job
from lakewright_spark.scheduler.due import BY_LOCATION
from lakewright_spark.table_identifier import TableIdentifier


def need_locations(config: CatalogConfig, jobs: Iterable[Job]) -> bool:
    """Return whether the jobs have to know the locations of all tables. Lakekeeper itself refuses overlapping ones."""
    return config.kind != "lakekeeper" and not BY_LOCATION.isdisjoint(jobs)


def overlaps(tables: Sequence[TableFacts], unknown: Sequence[TableIdentifier] = ()) -> Mapping[TableIdentifier, str]:
    """Return, by table, why no file may be deleted by its location: others have theirs at, in or around it.

    `unknown` are tables that could not be read: their files may lie anywhere.
    """
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        reason = f"the location of {unknown[0]}{more} is not known, since it cannot be read, and may overlap its own"
        return {one.table: reason for one in tables}
    at: defaultdict[str, set[TableIdentifier]] = defaultdict(set)
    below: defaultdict[str, set[TableIdentifier]] = defaultdict(set)
    for one in tables:
        for place in one.places:
            at[_normal(place)].add(one.table)
            for folder in _folders(_normal(place)):
                below[folder].add(one.table)
    found: dict[TableIdentifier, str] = {}
    for one in tables:
        location = _normal(one.location)
        around = {table for folder in _folders(location) for table in at[folder]} if location else set()
        if others := sorted(map(str, (around | below[location]) - {one.table})):
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            found[one.table] = (
                f"its location {one.location} overlaps that of {', '.join(others[:3])}{more}: "
                "give each table a location of its own"
            )
    return found


def _normal(place: str) -> str:
    return re.sub(r"^s3[an]://", "s3://", place).rstrip("/")


def _folders(place: str) -> Iterator[str]:
    """The place itself and every folder around it, up to the bucket."""
    yield place
    while (slash := place.rfind("/")) > 0 and place[slash - 1] != "/":
        place = place[:slash]
        yield place
