"""The plan for a warehouse: each table that was looked at, and what is to be done about it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog_policies import TablePolicies
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.running import reason_to_wait
from lakewright_spark.policies.tables import PolicyTables
from lakewright_spark.registry.registry import ExecutionRegistry
from lakewright_spark.scheduler.due import Decision, History, decide
from lakewright_spark.scheduler.facts import TableFacts
from lakewright_spark.scheduler.filters import Filters
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
    for facts in tables(config, warehouse, catalog, filters, stop or threading.Event()):
        try:
            holds = policies.of(facts.table, dict(facts.properties)).policies
        except PolicyRefusedError as error:
            problems[facts.table] = str(error)
            continue
        busy = reason_to_wait(facts.table, registry) if "compaction" in filters.jobs else None
        history = histories.get(facts.uuid, History())
        found.append(TablePlan(facts, holds, tuple(decide(facts, holds, history, now, jobs=filters.jobs, busy=busy))))
    return WarehousePlan(warehouse, tuple(found), problems)
