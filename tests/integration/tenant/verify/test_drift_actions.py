"""`lakewright drift` with rules, --accept and --heal on a deployed tenant whose objects were changed over HTTP."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.verify.conftest import deploy_tenant
from tests.tenant_project import Tenant

pytestmark = [pytest.mark.xdist_group("drift-actions"), pytest.mark.timeout(300)]

DAY = 86_400
COLUMNS = [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]
GRANT = {"to": "user:oidc~zoe", "privilege": "describe", "on": {"warehouse": "executions"}}


@pytest.fixture(scope="module")
def initech(project: Path, sandbox: Sandbox) -> Tenant:
    """A tenant with all kinds of drift that can be accepted."""
    warehouse = {"name": "executions", "namespaces": ["results"], "deletion": "purge", "soft_delete_days": 7}
    scratch = {"name": "scratch", "namespaces": ["drafts"], "deletion": "purge"}
    table = {"name": "executions.results.runs", "columns": COLUMNS, "properties": {"owner": "me"}}
    return deploy_tenant(
        project,
        sandbox,
        "initech",
        warehouses=[warehouse | {"task_queues": {"tabular_purge": {"max_seconds_since_last_heartbeat": 600}}}, scratch],
        tables=[table],
        grants=[GRANT],
        role_members={"executions-reader": {"users": ["oidc~ann", "oidc~ben"]}},
    )


def run_drift(tenant: Tenant, *arguments: str) -> tuple[int, dict[str, Any]]:
    completed = tenant.run("drift", "--json", *arguments)
    assert "Traceback" not in completed.stderr, completed.stderr
    return completed.returncode, json.loads(completed.stdout)


def list_differences(document: dict[str, Any]) -> set[tuple[str, str, str]]:
    [stack] = document["stacks"]
    assert stack["problems"] == []
    return {(entry["type"].rpartition(":")[2], entry["property"], entry["kind"]) for entry in stack["differences"]}


def read_resources(tenant: Tenant) -> dict[tuple[str, str], dict[str, Any]]:
    deployment = json.loads(tenant.output("stack", "export"))["deployment"]
    return {
        (part["type"].rpartition(":")[2], part["urn"].rpartition("::")[2]): part for part in deployment["resources"]
    }


def change_everything(tenant: Tenant, server: httpx.Client) -> set[tuple[str, str, str]]:
    """Change one object of each kind over HTTP. Return kind, property and kind of difference."""
    state = read_resources(tenant)
    name, project = tenant.name, {"x-project-id": tenant.name}
    warehouse = state["Warehouse", f"{name}-executions"]["id"]
    role = state["Role", f"{name}-executions-reader"]["id"]
    rights = "/management/v1/permissions"
    catalog = f"/catalog/v1/{warehouse}/namespaces"
    members = f"{rights}/role/{role}/assignments"
    calls: list[tuple[str, str, dict[str, Any]]] = [
        (
            "POST",
            f"/management/v1/warehouse/{warehouse}/delete-profile",
            {"delete-profile": {"type": "soft", "expiration-seconds": 14 * DAY}},
        ),
        ("POST", f"/management/v1/warehouse/{warehouse}/protection", {"protected": True}),
        (
            "POST",
            f"/management/v1/warehouse/{warehouse}/task-queue/tabular_purge/config",
            {"queue-config": {}, "max-seconds-since-last-heartbeat": 900},
        ),
        (
            "POST",
            f"{catalog}/results/tables/runs",
            {
                "requirements": [],
                "updates": [
                    {"action": "set-properties", "updates": {"owner": "you"}},
                ],
            },
        ),
        (
            "POST",
            f"{rights}/warehouse/{warehouse}/assignments",
            {"writes": [], "deletes": [{"type": "describe", "user": "oidc~zoe"}]},
        ),
        (
            "POST",
            members,
            {
                "writes": [{"type": "assignee", "user": "oidc~eve"}],
                "deletes": [{"type": "assignee", "user": "oidc~ann"}],
            },
        ),
    ]
    for method, path, body in calls:
        response = server.request(method, path, json=body, headers=project)
        assert response.is_success, response.text
    return {
        ("Warehouse", "delete_profile.expiration_seconds", "changed"),
        ("Warehouse", "protected", "changed"),
        ("TaskQueueConfig", "max_seconds_since_last_heartbeat", "changed"),
        ("Table", "properties", "changed"),
        ("Grant", "", "gone"),
        ("RoleMembers", "users", "changed"),
    }


@pytest.mark.long
def test_accepted_drift_is_no_change_of_the_program(initech: Tenant, stack_http: httpx.Client) -> None:
    """Accept one drift of each kind. Afterwards neither a preview with refresh nor an update changes anything."""
    file = initech.folder / "tenants" / "Pulumi.initech.yaml"
    file.write_text(file.read_text().replace("owner: tests", "owner: tests  # the team"))
    expected = change_everything(initech, stack_http)

    code, document = run_drift(initech)
    assert (code, list_differences(document)) == (7, expected)
    code, document = run_drift(initech, "--accept", "--yes")

    [accepted] = document["accepted"]
    assert (code, accepted["refused"]) == (0, [])
    assert len(accepted["accepted"]) == len(expected)
    assert "# the team" in file.read_text()
    spec = yaml.safe_load(file.read_text())["config"]["lakewright:tenant"]
    warehouse, _ = spec["warehouses"]
    assert (warehouse["soft_delete_days"], warehouse["protected"]) == (14, True)
    assert spec["tables"][0]["properties"] == {"owner": "you"}
    assert spec["role_members"]["executions-reader"]["users"] == ["oidc~ben", "oidc~eve"]
    assert spec.get("grants") == []
    steps = initech.verb("preview", "--refresh")["steps"]
    assert {
        (step["op"], step["urn"]) for step in steps if step["op"] in ("create", "update", "replace", "delete")
    } == set()

    initech.spec = spec
    initech.up("--refresh")
    assert run_drift(initech)[0] == 0


def test_heal_reverts_and_leaves_ignored_resources(initech: Tenant, stack_http: httpx.Client) -> None:
    """Ignored differences are shown, do not count, and are kept when all other differences are healed."""
    warehouse = read_resources(initech)["Warehouse", "initech-executions"]["id"]
    expiry = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    rule = {"resource": "Warehouse *", "property": "protected", "until": expiry, "reason": "audit"}
    initech.spec["drift"] = {"ignore": [rule, {**rule, "resource": "Role *"}, {**rule, "until": "2020-01-01"}]}
    initech.write()
    before = stack_http.get(f"/management/v1/warehouse/{warehouse}").json()["protected"]
    body = {"protected": not before}
    stack_http.post(f"/management/v1/warehouse/{warehouse}/protection", json=body).raise_for_status()

    code, document = run_drift(initech)
    [ignored] = document["stacks"][0]["differences"]
    assert (code, ignored["ignored"]["reason"], ignored["ignored"]["until"]) == (0, "audit", expiry)
    assert [note.rpartition(") ")[2] for note in document["notes"]] == [
        "is expired; remove or renew it. It no longer ignores 1 difference",
        "matches nothing in this run",
    ]

    role = read_resources(initech)["Role", "initech-executions-reader"]["id"]
    body = {"writes": [{"type": "assignee", "user": "oidc~mallory"}], "deletes": []}
    stack_http.post(f"/management/v1/permissions/role/{role}/assignments", json=body).raise_for_status()
    code, document = run_drift(initech, "--heal", "--yes")

    [healed] = document["healed"]
    assert (code, healed["remaining"]) == (0, [])
    assert [entry["property"] for entry in healed["healed"]] == ["users"]
    assert [entry["reason"] for entry in healed["kept"]] == [f"ignored until {expiry}: audit"]
    after = stack_http.get(f"/management/v1/warehouse/{warehouse}").json()
    assert after["protected"] is not before


@pytest.mark.long
def test_heal_leaves_changes_that_were_never_deployed(initech: Tenant, stack_http: httpx.Client) -> None:
    """The spec drops a warehouse, changes a table and adopts a live value. Heal reverts the members of a role only."""
    initech.spec.pop("drift", None)
    initech.up("--refresh")
    state = read_resources(initech)
    warehouse, scratch = (state["Warehouse", f"initech-{name}"]["id"] for name in ("executions", "scratch"))
    role = state["Role", "initech-executions-reader"]["id"]
    body = {"writes": [{"type": "assignee", "user": "oidc~mallory"}], "deletes": []}
    stack_http.post(f"/management/v1/permissions/role/{role}/assignments", json=body).raise_for_status()
    protected = {"protected": not initech.spec["warehouses"][0].get("protected", False)}
    stack_http.post(f"/management/v1/warehouse/{warehouse}/protection", json=protected).raise_for_status()
    updates = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "mallory"}}]}
    table = f"/catalog/v1/{warehouse}/namespaces/results/tables/runs"
    stack_http.post(table, json=updates, headers={"x-project-id": "initech"}).raise_for_status()
    before = json.loads(json.dumps(initech.spec))
    initech.spec["warehouses"] = [initech.spec["warehouses"][0] | protected]
    initech.spec["tables"][0]["properties"] = {"owner": "ann"}
    initech.write()

    code, document = run_drift(initech, "--heal", "--yes")

    [healing] = document["healed"]
    kept_reasons = {(entry["resource"], entry["property"]): entry["reason"] for entry in healing["kept"]}
    assert [entry["property"] for entry in healing["healed"]] == ["users"]
    assert set(kept_reasons) == {("initech-executions", "protected"), ("initech-executions.results.runs", "properties")}
    assert "already declares" in kept_reasons["initech-executions", "protected"]
    assert "never deployed" in kept_reasons["initech-executions.results.runs", "properties"]
    left_changes = {(step["op"], step["urn"].rpartition("::")[2]) for step in healing["left_changes"]}
    assert {("delete", "initech-scratch"), ("update", "initech-executions.results.runs")} <= left_changes
    assert (code, healing["remaining"]) == (7, []), "the table's drift is left"
    assert stack_http.get(f"/management/v1/warehouse/{scratch}").is_success
    assert stack_http.get(f"/management/v1/warehouse/{warehouse}").json()["protected"] is protected["protected"]
    members = stack_http.get(f"/management/v1/permissions/role/{role}/assignments").json()["assignments"]
    assert "oidc~mallory" not in json.dumps(members)
    initech.spec = before
    initech.up("--refresh")


def test_actions_need_a_confirmation(initech: Tenant) -> None:
    for option in ("--accept", "--heal"):
        assert f"{option} needs --yes" in initech.error("drift", option)


def test_added_column_is_accepted_after_a_refused_update(initech: Tenant, stack_http: httpx.Client) -> None:
    """The refresh of the refused update put the live columns into the state, so its properties do not differ."""
    warehouse = read_resources(initech)["Warehouse", "initech-executions"]["id"]
    table = f"/catalog/v1/{warehouse}/namespaces/results/tables/runs"
    metadata = stack_http.get(table).raise_for_status().json()["metadata"]
    schema = next(
        schema_version
        for schema_version in metadata["schemas"]
        if schema_version["schema-id"] == metadata["current-schema-id"]
    )
    number = metadata["last-column-id"] + 1
    schema["fields"].append({"id": number, "name": "extra", "type": "string", "required": False})
    updates = [
        {"action": "add-schema", "schema": schema, "last-column-id": number},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    stack_http.post(table, json={"requirements": [], "updates": updates}).raise_for_status()
    assert "extra" in initech.error("up", "--refresh", "--yes", "--engine", "embedded")

    code, document = run_drift(initech)
    [column] = [entry for entry in document["stacks"][0]["differences"] if entry["property"] == "columns"]
    assert (code, [entry["name"] for entry in column["found"]]) == (7, ["id", "note", "extra"])
    code, document = run_drift(initech, "--accept", "--yes")

    [accepted] = document["accepted"]
    assert (code, accepted["refused"]) == (0, [])
    file = initech.folder / "tenants" / "Pulumi.initech.yaml"
    initech.spec = yaml.safe_load(file.read_text())["config"]["lakewright:tenant"]
    assert initech.spec["tables"][0]["columns"][-1] == {"name": "extra", "type": "string"}
    initech.up("--refresh")
    assert run_drift(initech)[0] == 0


def test_failed_checks_are_drift(initech: Tenant) -> None:
    initech.spec["checks"] = [{"table": "executions.results.runs", "min_rows": 1}]
    initech.write()

    _, document = run_drift(initech)

    [check] = [entry for entry in document["stacks"][0]["differences"] if entry["kind"] == "check"]
    assert (check["resource"], check["property"]) == ("table executions.results.runs", "min_rows")
    assert (check["declared"], check["found"]) == ("at least 1 rows", "no snapshot, so no rows")
