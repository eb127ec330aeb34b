"""Claims of tables as properties of `ops.maintenance_lease`: who works on a table, who waits for it, who is alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter
from pyiceberg.catalog import Catalog

from lakewright_spark.scheduler.lease_table import NAME
from lakewright_spark.scheduler.run_log.ops_tables import find_table

CLAIM = "lakewright.claim."
"""Prefix of a claim's property; the UUID of the claimed table follows."""
REQUEST = "lakewright.request."
"""Prefix of the property of a job that waits for a claimed table; the UUID of the table follows."""
RUNNER = "lakewright.runner."
"""Prefix of the property of a live runner of many tables; its name follows."""


@dataclass(frozen=True)
class ClaimRow:
    """The holder of a claim and its times (UTC)."""

    table: str
    """Full name, for messages."""
    holder: str
    since: datetime
    expires_at: datetime

    def is_held_by_other(self, runner: str, now: datetime) -> bool:
        """Return whether another runner holds it now."""
        return self.holder != runner and now < self.expires_at


_CLAIM = TypeAdapter(ClaimRow)


def _read(properties: Mapping[str, str], prefix: str) -> dict[str, ClaimRow]:
    texts = {key.removeprefix(prefix): text for key, text in properties.items() if key.startswith(prefix)}
    return {name: _CLAIM.validate_json(text) for name, text in texts.items()}


def read_claims(properties: Mapping[str, str]) -> dict[str, ClaimRow]:
    """Return the claims by the UUID of the table, including expired claims."""
    return _read(properties, CLAIM)


def read_requests(properties: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Return the jobs that wait for a claimed table, by the UUID of the table."""
    return {uuid: row.holder for uuid, row in _read(properties, REQUEST).items() if now < row.expires_at}


def read_runners(properties: Mapping[str, str]) -> dict[str, ClaimRow]:
    """Return the runners of many tables by name, including expired runners."""
    return _read(properties, RUNNER)


def to_property(prefix: str, name: str, row: ClaimRow) -> dict[str, str]:
    """Return the row as a property of the table."""
    return {prefix + name: _CLAIM.dump_json(row).decode()}


def active_runners(catalog: Catalog, now: datetime) -> frozenset[str]:
    """Return the runners and jobs that are alive."""
    if (table := find_table(catalog, NAME)) is None:
        return frozenset()
    rows = [*read_claims(table.properties).values(), *read_runners(table.properties).values()]
    return frozenset(row.holder for row in rows if now < row.expires_at)


def list_live_runners(catalog: Catalog, now: datetime) -> list[ClaimRow]:
    """Return the runners that work on many tables of the warehouse."""
    table = find_table(catalog, NAME)
    rows = read_runners(table.properties).values() if table else ()
    return [row for row in rows if now < row.expires_at]


def find_dead_claims(catalog: Catalog, now: datetime) -> dict[str, str]:
    """Return the holders of expired claims by the UUID of the table: they died while they worked on it."""
    if (table := find_table(catalog, NAME)) is None:
        return {}
    return {uuid: row.holder for uuid, row in read_claims(table.properties).items() if row.expires_at <= now}
