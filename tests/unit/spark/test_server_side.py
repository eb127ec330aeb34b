"""What the catalog's server does itself, by warehouse and by table; the jobs leave it alone and say why."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog_policies import Job
from lakewright_spark.maintenance.job import reason_to_skip
from lakewright_spark.policies.tables import PolicyTables, shown
from lakewright_spark.table_identifier import TableIdentifier

EXPIRY, ORPHANS = "lakekeeper.history.expire.enabled", "lakekeeper.remove-orphan-files.enabled"
BOTH: tuple[Job, ...] = ("snapshot-expiration", "orphan-files", "staged-files")


def in_force(server: tuple[Job, ...], properties: dict[str, str], kind: str = "lakekeeper"):
    of = {"id": "1"} if kind == "lakekeeper" else {}
    project = {"project_id": "acme"} if kind == "lakekeeper" else {}
    warehouse = CatalogWarehouse(name="w", server_jobs=server, **of)
    config = CatalogConfig(kind=kind, tenant="acme", uri="https://c.example", warehouses=[warehouse], **project)
    return PolicyTables(config, "w").of(TableIdentifier("w", ("n",), "t"), properties)


@pytest.mark.parametrize(
    ("server", "properties", "left_alone"),
    [
        ((), {}, set()),
        (("snapshot-expiration",), {}, {"snapshot-expiration"}),
        (BOTH, {}, set(BOTH)),
        # A table's own property wins over what is said of its warehouse, as it does at the server.
        (BOTH, {EXPIRY: "false"}, {"orphan-files", "staged-files"}),
        ((), {ORPHANS: "true"}, {"orphan-files", "staged-files"}),
    ],
)
def test_jobs_leave_alone_what_the_server_does(
    server: tuple[Job, ...], properties: dict[str, str], left_alone: set[str]
) -> None:
    policies, now = in_force(server, properties).policies, datetime.now(UTC)
    jobs: tuple[Job, ...] = (*BOTH, "retention", "compaction")
    assert {job for job in jobs if reason_to_skip(job, policies, now)} == left_alone


def test_another_catalog_has_no_such_queues() -> None:
    assert reason_to_skip("orphan-files", in_force((), {ORPHANS: "true"}, "rest").policies, datetime.now(UTC)) is None


def test_the_reason_says_where_it_is_declared() -> None:
    found = in_force(("snapshot-expiration",), {ORPHANS: "true"})
    now = datetime.now(UTC)
    assert reason_to_skip("snapshot-expiration", found.policies, now) == (
        "the catalog's server does snapshot-expiration itself, by `maintenance.server` of the tenant's spec"
    )
    assert str(reason_to_skip("staged-files", found.policies, now)).endswith(f"by the table's property {ORPHANS}")
    assert shown(found)["staged-files by the server"] == {"value": True, "from": f"the table's property {ORPHANS}"}
    assert found.policies.properties() == {}
