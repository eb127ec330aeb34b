"""Pre-flight on every server version: before 0.14 there is no dry run, and this machine checks what it can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import httpx
import pytest
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.server.bootstrap import BootstrapProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from tests.integration.provider.old_server import OldServer
from tests.integration.provider.preflight.reported_checks import TAKEN, run_preflight
from tests.integration.provider.resource import Props, Resource

WITHOUT_A_DRY_RUN = pytest.mark.parametrize("old", ["0.11", "0.13"], indirect=True)


@pytest.fixture
def prerelease(servers: dict[str, OldServer], sandbox: Sandbox, tmp_path: Path) -> Iterator[OldServer]:
    """A server of 0.13 with the task queues of 0.14."""
    settings = Settings(database=f"sqlite:///{tmp_path / 'db'}", version="0.13", skip_storage_validation=True)
    app = create_app(settings)
    info = httpx.get(f"{servers['0.13'].server['endpoint']}/management/v1/info").json()

    async def newer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == "/management/v1/info":
            await JSONResponse(info | {"queues": ["soft_deletion", "tabular_purge"]})(scope, receive, send)
        else:
            await app(scope, receive, send)

    with serve(newer) as endpoint, httpx.Client(base_url=endpoint, timeout=30) as http:
        yield OldServer("0.13", http, sandbox, servers["0.13"].bucket)


def list_keys(old: OldServer, prefix: str) -> list[str]:
    admin = old.sandbox.admin
    session = boto3.Session(admin.access_key_id, admin.secret_access_key.get_secret_value(), region_name="us-east-1")
    s3 = session.client("s3", endpoint_url=old.sandbox.aws.endpoint)
    return [entry["Key"] for entry in s3.list_objects_v2(Bucket=old.bucket, Prefix=prefix).get("Contents", [])]


def test_dry_run_from_0_14_on_and_local_checks_before(reports: Path, old: OldServer) -> None:
    warehouse_props = old.warehouse()
    checks = run_preflight(reports, warehouse_props)
    assert (checks["name"][0], checks["overlap"][0]) == ("passed", "passed")
    assert any(name.startswith("server: ") for name in checks) == old.is_at_least("0.14")
    if not old.is_at_least("0.14"):
        assert checks["role"] == ("skipped", "no role is declared")
        status, reason = checks["bucket"]
        probe_prefix = f"s3://{old.bucket}/{warehouse_props['storage']['key_prefix']}/lakewright-validate-"
        assert (status, reason.partition(probe_prefix)[0]) == (
            "passed",
            "a probe object was written, read and deleted at ",
        )
    assert list_keys(old, warehouse_props["storage"]["key_prefix"]) == []
    project_header = {"x-project-id": warehouse_props["project_id"]}
    assert old.http.get("/management/v1/warehouse", headers=project_header).json()["warehouses"] == []


def test_name_and_location_are_checked_on_every_version(reports: Path, old: OldServer) -> None:
    """Warehouses of other projects count. Inactive warehouses count from 0.14 on; earlier lists omit them."""
    taken = old.warehouse(active=not old.is_at_least("0.14"))
    existing = Resource(WarehouseProvider())
    existing.up(**taken)
    run_context.start(run_context.current().next())
    prefix = f"{taken['storage']['key_prefix']}/below"
    other = old.warehouse(storage=old.storage(key_prefix=prefix))
    status, reason = run_preflight(reports, other)["overlap"]
    assert status == "failed"
    assert f"warehouse `main` ({existing.id}) of project {taken['project_id']}" in reason
    assert ("inactive" in reason) == old.is_at_least("0.14")
    status, reason = run_preflight(reports, taken | {"storage": old.storage(), "name": "MAIN"}, invalid_inputs=TAKEN)[
        "name"
    ]
    assert status == "failed"
    assert existing.id in reason


def test_preflight_reports_unlisted_inactive_warehouses(reports: Path, old: OldServer) -> None:
    taken = old.warehouse(active=False)
    Resource(WarehouseProvider()).up(**taken)
    run_context.start(run_context.current().next())
    expected_invalid = TAKEN if old.is_at_least("0.14") else frozenset[str]()
    status, reason = run_preflight(reports, taken, invalid_inputs=expected_invalid)["name"]
    if old.is_at_least("0.14"):
        assert status == "failed"
        return
    version = old.client().server().version_text
    assert status == "passed"
    assert reason.endswith(f"More warehouses may exist: Lakekeeper {version} lists active warehouses only")


@WITHOUT_A_DRY_RUN
def test_refused_storage_fails_before_any_creation(reports: Path, old: OldServer) -> None:
    missing = old.warehouse(storage=old.storage(bucket="not-there"))
    status, reason = run_preflight(reports, missing)["bucket"]
    assert status == "failed"
    assert "cannot be written: NoSuchBucket" in reason
    wrong = old.warehouse()
    wrong["credential"] = wrong["credential"] | {"secret_access_key": "env:OTHER_KEY"}
    status, reason = run_preflight(reports, wrong)["bucket"]
    assert status == "failed"
    assert "SignatureDoesNotMatch" in reason


@WITHOUT_A_DRY_RUN
def test_changed_storage_of_an_existing_warehouse_is_tested(reports: Path, old: OldServer) -> None:
    warehouse_props = old.warehouse()
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**warehouse_props)
    run_context.start(run_context.current().next())
    wrong = warehouse_props | {"credential": warehouse_props["credential"] | {"secret_access_key": "env:OTHER_KEY"}}
    checks = run_preflight(reports, wrong, olds=warehouse.inputs)
    assert checks["overlap"][0] == "passed"
    assert checks["bucket"][0] == "failed"


@WITHOUT_A_DRY_RUN
def test_checks_that_need_a_dry_run_are_skipped(reports: Path, old: OldServer, monkeypatch: pytest.MonkeyPatch) -> None:
    project = old.project()
    Resource(ProjectProvider()).up(**project)
    monkeypatch.setenv("AZURE_KEY", "c2VjcmV0")
    azure: Props = {"type": "adls", "filesystem": "lake", "account_name": "account", "key_prefix": "main"}
    warehouse_args = {"server": old.server, "project_id": project["project_id"], "name": "main"}
    key = {"type": "shared-access-key", "key": "env:AZURE_KEY"}
    status, reason = run_preflight(reports, warehouse_args | {"storage": azure, "credential": key})["storage"]
    assert (status, reason) == (
        "skipped",
        "only Lakekeeper 0.14 and newer can try storage of type `adls` in a dry run",
    )


def test_prerelease_without_a_dry_run_is_checked_locally(
    reports: Path, prerelease: OldServer, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    """It has the task queues of 0.14 already, but the path of the dry run is missing."""
    monkeypatch.setenv("KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("KEY", sandbox.admin.secret_access_key.get_secret_value())
    Resource(BootstrapProvider()).up(server=prerelease.server, accept_terms_of_use=True)
    assert prerelease.client().server().has_dry_runs
    assert run_preflight(reports, prerelease.warehouse())["bucket"][0] == "passed"
