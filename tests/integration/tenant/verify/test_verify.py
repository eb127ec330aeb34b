"""`lakewright verify` on a tenant that is isolated, and on tenants that are broken on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from lakewright.cli.commands.verify import open_session
from lakewright.verify.registry import PROBES
from lakewright.verify.run import run_probes
from lakewright.verify.session.stack_warehouses import OtherTenants

from tests.integration.tenant.verify.conftest import find_manifest
from tests.tenant_project import Tenant
from tests.verifying import Verify, group_failed_checks

pytestmark = [pytest.mark.xdist_group("verify"), pytest.mark.timeout(300)]


def test_isolated_tenant_passes_every_probe(acme: Tenant) -> None:
    completed = acme.run("verify", "--json")

    result = json.loads(completed.stdout)
    assert (completed.returncode, result["holds"], result["failed_probes"]) == (0, True, []), completed.stdout
    assert {check["probe"] for check in result["checks"]} == {probe.name for probe in PROBES}
    evidence = {(check["probe"], check["warehouse"], check["attempt"]): check["evidence"] for check in result["checks"]}
    assert evidence["table", "executions", "write a table"] == "vended: PUT 200, commit 200"
    assert evidence["table", "signed", "read the table"] == "remote-signing: GET 200"
    write = "write to tenant globex's prefix of executions"
    assert evidence["other-prefixes", "executions", write] == "PUT 403 AccessDenied"
    assert evidence["other-prefixes", "signed", write] == "PUT not signed: 400 NoSuchTableLocationException"


def test_concurrency_changes_no_check(verify: Verify) -> None:
    one_by_one = verify(parallel=1)

    concurrent = verify(parallel=16)

    assert concurrent.checks == one_by_one.checks
    assert concurrent.notes == one_by_one.notes
    assert concurrent.holds


def test_table_prints_the_attempts_and_no_secrets(acme: Tenant) -> None:
    completed = acme.run("verify")

    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "acme: all" in completed.stdout
    tokens = acme.sandbox.tokens
    assert tokens is not None
    secret = tokens.jobs_client_secret_file.with_name("jobs-acme").read_text()
    assert secret not in completed.stdout + completed.stderr


def test_verify_leaves_no_objects(verify: Verify, acme: Tenant, stack_http: httpx.Client) -> None:
    verify("table", "other-tables")

    for warehouse in acme.catalog_config().warehouses:
        namespaces = stack_http.get(f"/catalog/v1/{warehouse.id}/namespaces").json()["namespaces"]
        assert [levels for levels in namespaces if levels[0].startswith("lakewright_verify_")] == []


@pytest.fixture
def foreign_grant(acme: Tenant, stack_http: httpx.Client) -> Iterator[str]:
    """A grant on the other tenant's warehouse, made outside of the stacks."""
    projects = {"x-project-id": "globex"}
    (warehouse,) = stack_http.get("/management/v1/warehouse", headers=projects).json()["warehouses"]
    path = f"/management/v1/permissions/warehouse/{warehouse['id']}/assignments"
    grant = {"type": "select", "user": "oidc~jobs-acme"}
    stack_http.post(path, json={"writes": [grant], "deletes": []}).raise_for_status()
    yield warehouse["id"]
    stack_http.post(path, json={"writes": [], "deletes": [grant]}).raise_for_status()


def test_grant_on_another_tenant_fails(verify: Verify, foreign_grant: str) -> None:
    failed_checks = group_failed_checks(verify("foreign-catalog", "management"))

    attempts = [check.attempt for check in failed_checks["foreign-catalog"]]
    assert "read the catalog configuration of tenant globex's executions" in attempts
    assert "load table results.secret of tenant globex's executions" in attempts
    assert any(check.attempt.startswith("see other projects") for check in failed_checks["management"])


@pytest.fixture
def edit_manifest(acme: Tenant) -> Iterator[Callable[[str, Callable[[Any], None]], None]]:
    """Change a find_manifest manifest, as a user with access to the cluster could."""
    before: dict[Path, str] = {}

    def edit(kind: str, change: Callable[[Any], None]) -> None:
        file = find_manifest(acme, kind)
        before[file] = file.read_text()
        manifest = yaml.safe_load(before[file])
        change(manifest)
        file.write_text(yaml.safe_dump(manifest))

    yield edit
    for file, text in before.items():
        file.write_text(text)


def _container(manifest: Any) -> Any:
    return manifest["spec"]["template"]["spec"]["containers"][0]


def test_secret_in_a_units_environment_fails(verify: Verify, edit_manifest: Any) -> None:
    edit_manifest(
        "Deployment",
        lambda manifest: _container(manifest)["env"].append({"name": "AWS_SECRET_ACCESS_KEY", "value": "x1"}),
    )

    (check,) = group_failed_checks(verify("unit-secrets"))["unit-secrets"]

    assert check.evidence == "variable AWS_SECRET_ACCESS_KEY has a value"


def test_open_metadata_address_fails(verify: Verify, edit_manifest: Any) -> None:
    edit_manifest("NetworkPolicy", lambda manifest: manifest["spec"].update(egress=[{}]))

    (check,) = group_failed_checks(verify("metadata-address"))["metadata-address"]

    assert "allows it" in check.evidence


def test_unit_in_its_nodes_network_fails(verify: Verify, edit_manifest: Any) -> None:
    edit_manifest("Deployment", lambda manifest: manifest["spec"]["template"]["spec"].update(hostNetwork=True))

    (check,) = group_failed_checks(verify("metadata-address"))["metadata-address"]

    assert check.evidence == "`hostNetwork: true`: no NetworkPolicy applies to a pod in its node's network"


def test_tenant_at_another_address_of_the_server_is_probed(acme: Tenant, verify: Verify) -> None:
    """The environment of the other tenant may use a port-forward, or another name of the same server."""
    assert verify("authorization").holds
    session, subjects = open_session(acme.name, acme.folder)
    (foreign,) = [warehouse for warehouse in session.other_warehouses if warehouse.project_id == "globex"]
    elsewhere = replace(foreign, endpoint="http://lakekeeper.other.example:8181")
    unknown = replace(foreign, endpoint="https://prod.example", server_id="", stack="initech", project_id="initech")
    session = replace(session, other_tenants=OtherTenants((elsewhere, unknown), ("stack hooli: unreadable",)))

    report = run_probes(session, subjects, [probe for probe in PROBES if probe.name == "foreign-catalog"])

    attempts = {check.attempt for check in report.checks}
    assert "load table results.secret of tenant globex's executions" in attempts
    assert not [attempt for attempt in attempts if "canary" in attempt or "initech" in attempt]
    assert report.notes == [
        "not probed: stack hooli: unreadable",
        "not probed: tenant initech's executions on the catalog: https://prod.example may be another server: its state"
        " has no server id",
    ]
