"""Jobs that delete files are held back where the bucket's owner does not let the platform delete."""

from __future__ import annotations

from datetime import UTC, datetime

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance.registry import MAINTENANCE_JOBS
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.scheduler.plan import JobDecision, TablePlan, WarehousePlan, hold_jobs_that_delete
from lakewright_spark.table_identifier import TableIdentifier


def due() -> WarehousePlan:
    """Return a plan in which every job is due on one table."""
    touched = datetime(2026, 1, 1, tzinfo=UTC)
    facts = TableFacts(table=TableIdentifier("own", ("sales",), "t"), uuid="t", properties={}, touched_at=touched)
    decisions = tuple(JobDecision(job.name, "due", "") for job in MAINTENANCE_JOBS)
    return WarehousePlan("own", (TablePlan(facts, TablePolicies(), decisions),), {})


def config(**fields: bool) -> CatalogConfig:
    warehouse = CatalogWarehouse.model_validate({"name": "own", "id": "w", **fields})
    return CatalogConfig(tenant="acme", uri="https://c.example", project_id="acme", warehouses=[warehouse])


def test_jobs_that_delete_are_held_with_the_reason() -> None:
    (table,) = hold_jobs_that_delete(config(may_delete=False), due()).tables

    reasons = {decision.job: decision.reason for decision in table.decisions if decision.verdict == "held"}
    assert set(reasons) == {"snapshot-expiration", "orphan-files", "staged-files", "compaction"}
    assert all("`may_delete: false`" in reason for reason in reasons.values())


def test_all_jobs_run_where_files_may_be_deleted() -> None:
    assert hold_jobs_that_delete(config(), due()) == due()


def test_configuration_without_the_field_stays_as_it_was() -> None:
    """Readers of the first release refuse fields that they do not know."""
    assert "may_delete" not in config().model_dump_json()
    assert '"may_delete":false' in config(may_delete=False).model_dump_json()
