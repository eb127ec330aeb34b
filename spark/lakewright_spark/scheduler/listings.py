"""Holds back orphan removal where the server does not sign the listing that it needs."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.catalog import Catalog

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.policies.model import Job
from lakewright_spark.pyiceberg_client.catalog import explained
from lakewright_spark.scheduler.due import Decision
from lakewright_spark.scheduler.plan import TablePlan, WarehousePlan
from lakewright_spark.scheduler.remote_signing import refusal_of_listings
from lakewright_spark.table_identifier import TableIdentifier

NEEDED_BY: Job = "orphan-files"
"""Staged files are deleted by their names, which every server signs."""


def reason_for_no_listing(config: CatalogConfig, catalog: Catalog, table: TableIdentifier) -> str | None:
    """Return why the files of this table cannot be listed; None where they can."""
    if config.warehouse(table.warehouse).delegation != "remote-signing":
        return None
    with explained(config, table.warehouse, f"table {table}"):
        return refusal_of_listings(catalog.load_table(table.within))


def held_without_listing(config: CatalogConfig, catalog: Catalog, plan: WarehousePlan) -> WarehousePlan:
    """Return the plan with orphan removal held where nothing can be listed. One table is asked for all."""
    reason: str | None = None
    for one in plan.tables:
        if any(decision.job == NEEDED_BY for decision in one.due):
            try:
                reason = reason_for_no_listing(config, catalog, one.facts.table)
                break
            except (NoSuchResultError, JobFailedError):
                continue  # dropped or damaged meanwhile: another one says as much
    if reason is None:
        return plan
    return replace(plan, tables=tuple(_held(one, reason) for one in plan.tables))


def _held(plan: TablePlan, reason: str) -> TablePlan:
    def held(decision: Decision) -> Decision:
        if decision.job != NEEDED_BY or decision.verdict != "due":
            return decision
        return replace(decision, verdict="held", reason=reason)

    return replace(plan, decisions=tuple(held(one) for one in plan.decisions))
