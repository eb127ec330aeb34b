"""The plan for a warehouse: each table that was looked at, and what is to be done about it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import PolicyRefusedError, RegistryError
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.maintenance.switches import reason_to_skip, reason_to_wait
from lakewright_spark.maintenance.table.facts import TableFacts, table_facts
from lakewright_spark.policies.model import Job, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import explained, open_catalog
from lakewright_spark.pyiceberg_client.read_errors import reason_unreadable
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.scheduler.due import BY_LOCATION, Decision, History, decide
from lakewright_spark.scheduler.locations import need_locations, overlaps
from lakewright_spark.scheduler.table_discovery import Filters, Unreadable, tables
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
    """Tables, and namespaces as a table `*`, about which nothing could be decided, and why. No job touches them."""
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
    located = need_locations(config, filters.jobs)
    found: list[TablePlan] = []
    problems: dict[TableIdentifier, str] = {}
    unread: list[TableIdentifier] = []
    places: list[TableFacts] = []
    walked = tables(config, warehouse, catalog, Filters() if located else filters, stop or threading.Event())
    for one in walked:
        if isinstance(one, Unreadable):
            unread.append(one.table)
            if filters.wants(one.table) or (one.is_namespace and filters.wants_namespace(one.table.namespace)):
                problems[one.table] = one.reason
            continue
        if located:
            places.append(one.only_places())
        if not filters.wants(one.table):
            continue
        try:
            holds = policies.of(one.table, dict(one.properties)).policies
            busy = reason_to_wait(one.table, registry) if "compaction" in filters.jobs else None
            history = histories.get(one.uuid, History())
            decisions = tuple(decide(one, holds, history, now, jobs=filters.jobs, busy=busy))
        except RegistryError:
            raise
        except PolicyRefusedError as error:
            problems[one.table] = str(error).removeprefix(f"table {one.table}: ")
            continue
        except Exception as error:  # noqa: BLE001  # of whatever kind: the other tables are not concerned
            problems[one.table] = reason_unreadable(catalog, error)
            continue
        found.append(TablePlan(one.without_history(), holds, decisions))
    shared = overlaps(places, unread)
    wanted = {one.facts.table for one in found}
    return WarehousePlan(
        warehouse,
        tuple(_held_by_location(one, shared.get(one.facts.table)) for one in found),
        problems,
        {table: reason for table, reason in shared.items() if table in wanted},
    )


def _held_by_location(plan: TablePlan, reason: str | None) -> TablePlan:
    """Return the plan without jobs that take every file at the table's location for the table's own."""
    if reason is None:
        return plan
    decisions = tuple(
        Decision(one.job, "held", reason) if one.job in BY_LOCATION and one.verdict == "due" else one
        for one in plan.decisions
    )
    return replace(plan, decisions=decisions)


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
        every = list(tables(config, table.warehouse, catalog, Filters(), threading.Event()))
        places = [one.only_places() for one in every if isinstance(one, TableFacts)]
        shared = overlaps(places, unknown=[one.table for one in every if isinstance(one, Unreadable)])
    holds = PolicyTables(config, table.warehouse).of(table, dict(facts.properties)).policies
    held = reason_to_skip(job, holds, now) or _others(table, job, registry, shared)
    return TablePlan(facts, holds, (Decision(job, "held" if held else "due", held or "asked for"),))


def _others(
    table: TableIdentifier, job: Job, registry: ExecutionRegistry | None, shared: Mapping[TableIdentifier, str]
) -> str | None:
    if job == "compaction":
        return reason_to_wait(table, registry)
    return shared.get(table) if job in BY_LOCATION else None
