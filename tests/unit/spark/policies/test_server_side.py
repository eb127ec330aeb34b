"""Maintenance jobs that the catalog's server does itself, by warehouse and table, are skipped with the reason."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lakewright_spark import cli
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance.switches import reason_to_skip
from lakewright_spark.policies.model import JobName
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables, to_json
from lakewright_spark.table_identifier import TableIdentifier

EXPIRY, ORPHANS = "lakekeeper.history.expire.enabled", "lakekeeper.remove-orphan-files.enabled"
BOTH: tuple[JobName, ...] = ("snapshot-expiration", "orphan-files", "staged-files")


def resolve(server: tuple[JobName, ...], properties: dict[str, str], kind: str = "lakekeeper"):
    of = {"id": "1"} if kind == "lakekeeper" else {}
    project = {"project_id": "acme"} if kind == "lakekeeper" else {}
    warehouse = CatalogWarehouse(name="w", server_jobs=server, **of)
    config = CatalogConfig(kind=kind, tenant="acme", uri="https://c.example", warehouses=[warehouse], **project)
    return PolicyTables(config, "w").resolve_policies(TableIdentifier("w", ("n",), "t"), properties)


@pytest.mark.parametrize(
    ("server", "properties", "left_alone"),
    [
        ((), {}, set()),
        (("snapshot-expiration",), {}, {"snapshot-expiration"}),
        (BOTH, {}, set(BOTH)),
        # A table's own property overrides its warehouse, as on the server.
        (BOTH, {EXPIRY: "false"}, {"orphan-files", "staged-files"}),
        ((), {ORPHANS: "true"}, {"orphan-files", "staged-files"}),
    ],
)
def test_jobs_of_the_server_are_skipped(
    server: tuple[JobName, ...], properties: dict[str, str], left_alone: set[str]
) -> None:
    policies, now = resolve(server, properties).policies, datetime.now(UTC)
    jobs: tuple[JobName, ...] = (*BOTH, "retention", "compaction")
    assert {job for job in jobs if reason_to_skip(job, policies, now)} == left_alone


def test_rest_catalog_has_no_task_queues() -> None:
    assert reason_to_skip("orphan-files", resolve((), {ORPHANS: "true"}, "rest").policies, datetime.now(UTC)) is None


def test_reason_names_the_declaration() -> None:
    resolved = resolve(("snapshot-expiration",), {ORPHANS: "true"})
    now = datetime.now(UTC)
    assert reason_to_skip("snapshot-expiration", resolved.policies, now) == (
        "the catalog's server does snapshot-expiration itself, by `maintenance.server` of the tenant's spec"
    )
    assert str(reason_to_skip("staged-files", resolved.policies, now)).endswith(f"by the table's property {ORPHANS}")
    assert to_json(resolved)["staged-files by the server"] == {"value": True, "from": f"the table's property {ORPHANS}"}
    assert resolved.policies.properties() == {}


def test_scheduler_refuses_jobs_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouses = [CatalogWarehouse(name="w", id="1", server_jobs=("snapshot-expiration",))]
    config = CatalogConfig(tenant="acme", uri="https://c.example", project_id="acme", warehouses=warehouses)
    (tmp_path / "catalog.json").write_text(config.to_json())
    arguments = ["maintain", "--config", str(tmp_path / "catalog.json"), "--job", "snapshot-expiration"]
    monkeypatch.setattr(sys, "argv", ["lakewright-spark", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 15
    assert "snapshot-expiration of warehouse w: the catalog's server does it itself" in " ".join(
        capsys.readouterr().err.split()
    )
