"""The plan for a warehouse: each table that was looked at, and what is to be done about it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog_policies import Job, TablePolicies
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.job import reason_to_skip
from lakewright_spark.maintenance.running import reason_to_wait
from lakewright_spark.policies.tables import PolicyTables
from lakewright_spark.pyiceberg_catalog import explained, open_catalog
from lakewright_spark.registry.registry import ExecutionRegistry
from lakewright_spark.scheduler.due import BY_LOCATION, Decision, History, decide
from lakewright_spark.scheduler.facts import TableFacts, table_facts
from lakewright_spark.scheduler.filters import Filters
from lakewright_spark.scheduler.locations import need_locations, overlaps
from lakewright_spark.scheduler.walk import tables
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True)
class TablePlan:
    """What is to be done about a table."""

    facts: TableFacts
    policies: TablePolicies
    decisions: tuple[Decision, ...]

    @property
    def due(self) -> list[Decision]:
        return [one for one in self.decisions if one.verdict == "due"]


@dataclass(frozen=True)
class WarehousePlan:
    """Every table of a warehouse that the filters want."""

    warehouse: str
    tables: tuple[TablePlan, ...]
    problems: Mapping[TableIdentifier, str]
    """Tables about which nothing could be decided, and why. No job touches them."""
    shared: Mapping[TableIdentifier, str] = field(default_factory=dict[TableIdentifier, str])
    """Tables whose location overlaps that of others, and how. No job deletes files there."""


def plan(
    config: CatalogConfig,
    warehouse: str,
    catalog: Catalog,
    *,
    filters: Filters,
    histories: Mapping[str, History],
    now: datetime,
    registry: ExecutionRegistry | None = None,
    stop: threading.Event | None = None,
) -> WarehousePlan:
    """Look at every table. `histories`: by the table's UUID. Raises as `walk.tables` does, and RegistryError."""
    policies = PolicyTables(config, warehouse)
    found: list[TablePlan] = []
    problems: dict[TableIdentifier, str] = {}
    looked_at, shared = _looked_at(config, warehouse, catalog, filters, stop or threading.Event())
    for facts in looked_at:
        try:
            holds = policies.of(facts.table, dict(facts.properties)).policies
            busy = reason_to_wait(facts.table, registry) if "compaction" in filters.jobs else None
            history = histories.get(facts.uuid, History())
            decisions = tuple(
                decide(facts, holds, history, now, jobs=filters.jobs, busy=busy, shared=shared.get(facts.table))
            )
        except PolicyRefusedError as error:
            problems[facts.table] = str(error)
            continue
        found.append(TablePlan(facts, holds, decisions))
    return WarehousePlan(warehouse, tuple(found), problems, shared)


def _looked_at(
    config: CatalogConfig, warehouse: str, catalog: Catalog, filters: Filters, stop: threading.Event
) -> tuple[Iterable[TableFacts], Mapping[TableIdentifier, str]]:
    """The tables that the filters want, and why the location of some is shared with any table of the warehouse."""
    if not need_locations(config, filters.jobs):
        return tables(config, warehouse, catalog, filters, stop), {}
    every = list(tables(config, warehouse, catalog, Filters(), stop))
    wanted = [one for one in every if filters.wants(one.table)]
    shared = overlaps(every)
    return wanted, {one.table: shared[one.table] for one in wanted if one.table in shared}


def asked_for(
    config: CatalogConfig, table: TableIdentifier, job: Job, *, registry: ExecutionRegistry | None, now: datetime
) -> TablePlan:
    """One job of one table, which is due since somebody wants it, unless something forbids it.

    Raises NoSuchResultError, PolicyRefusedError, and as `pyiceberg_catalog.explained` says.
    """
    catalog = open_catalog(config, table.warehouse)
    with explained(config, table.warehouse, f"table {table}"):
        facts = table_facts(table, catalog.load_table(table.within))
    shared: Mapping[TableIdentifier, str] = {}
    if need_locations(config, [job]):
        shared = overlaps(list(tables(config, table.warehouse, catalog, Filters(), threading.Event())))
    holds = PolicyTables(config, table.warehouse).of(table, dict(facts.properties)).policies
    held = reason_to_skip(job, holds, now) or _others(table, job, registry, shared)
    return TablePlan(facts, holds, (Decision(job, "held" if held else "due", held or "asked for"),))


def _others(
    table: TableIdentifier, job: Job, registry: ExecutionRegistry | None, shared: Mapping[TableIdentifier, str]
) -> str | None:
    if job == "compaction":
        return reason_to_wait(table, registry)
    return shared.get(table) if job in BY_LOCATION else None
