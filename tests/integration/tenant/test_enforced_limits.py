"""Enforced limits: grants of writers are suspended while a limit is reached, and granted again below it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright.cli.options import load_project
from lakewright.drift.detection.run import find_drift
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.limits.enforcement import enforce_limits
from lakewright.limits.stack_enforcement import StackEnforcement
from lakewright.restrictions.reading import read_restrictions
from pyiceberg.catalog import load_catalog

from tests.command_server import run_command
from tests.integration.tenant.conftest import Tenant, enter_project, write_environment

pytestmark = pytest.mark.stand_in("enforces grants, and signs users in by their names")

WAREHOUSE = {
    "name": "executions",
    "namespaces": ["results", "other"],
    "limits": {
        "bytes": "1KiB",
        "enforce": True,
        "exempt": ["role:cleaners"],
        "namespaces": {"other": {"tables": 5, "enforce": True}},
    },
}
RAW = {"name": "raw", "namespaces": ["landing"]}
GRANTS = [
    {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}},
    {"to": "role:analysts", "privilege": "modify", "on": {"warehouse": "executions"}},
    {"to": "role:analysts", "privilege": "create", "on": {"warehouse": "executions", "namespace": "results"}},
    {"to": "role:analysts", "privilege": "modify", "on": {"warehouse": "executions", "namespace": "other"}},
    {"to": "role:analysts", "privilege": "modify", "on": {"warehouse": "raw"}},
    {"to": "role:cleaners", "privilege": "modify", "on": {"warehouse": "executions"}},
    {"to": "user:oidc~ann", "privilege": "ownership", "on": {"warehouse": "executions"}},
]
READING = {("analysts", "select", "executions")}
KEPT = READING | {
    ("analysts", "modify", "raw"),
    ("cleaners", "modify", "executions"),
    ("oidc~ann", "ownership", "executions"),
}
SUSPENDED = {
    ("analysts", "modify", "executions"),
    ("analysts", "create", "executions.results"),
    ("analysts", "modify", "executions.other"),
}


@pytest.fixture
def tenant(make_tenant: Any, openfga: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Tenant:
    """A deployed tenant with an enforced limit on one of its two warehouses."""
    body = {"id": "oidc~ann", "name": "ann", "user-type": "human"}
    openfga.post("/management/v1/user", json=body).raise_for_status()
    tenant = make_tenant(warehouses=json.loads(json.dumps([WAREHOUSE, RAW])), grants=json.loads(json.dumps(GRANTS)))
    write_environment(tenant, openfga)
    openfga.headers["x-project-id"] = tenant.name
    tenant.up()
    enter_project(tenant, monkeypatch)
    return tenant


def list_access(server: httpx.Client) -> set[tuple[str, str, str]]:
    """Return principal, privilege and object of the declared grants on warehouses and namespaces."""
    roles = {role["id"]: role["name"] for role in server.get("/management/v1/role").json()["roles"]}
    access: set[tuple[str, str, str]] = set()
    for warehouse in server.get("/management/v1/warehouse").json()["warehouses"]:
        warehouse_id, name = warehouse["id"], warehouse["name"]
        spaces = server.get(f"/catalog/v1/{warehouse_id}/namespaces", params={"returnUuids": True}).json()
        objects = {f"warehouse/{warehouse_id}": name} | {
            f"namespace/{space_id}": f"{name}.{'.'.join(path)}"
            for path, space_id in zip(spaces["namespaces"], spaces["namespace-uuids"], strict=True)
        }
        for path, title in objects.items():
            entries = server.get(f"/management/v1/permissions/{path}/assignments").json()["assignments"]
            access |= {(roles.get(e.get("role"), e.get("user")), e["type"], title) for e in entries}
    return {entry for entry in access if entry[0] != "oidc~operator"}


def list_records(server: httpx.Client) -> list[dict[str, Any]]:
    """Return the roles that record the enforcement of limits."""
    roles = server.get("/management/v1/role").json()["roles"]
    return [role for role in roles if role["name"].startswith("lakewright-limit")]


def measure(used: dict[tuple[str | None, str | None], int], problem: str = "") -> Callable[..., list[SparkReport]]:
    """Return a measurement: bytes of the warehouse, and tables of the namespace."""

    def read_reports(stacks: Sequence[SelectedStack]) -> list[SparkReport]:
        limits = [
            {
                "warehouse": warehouse,
                "namespace": namespace,
                "quantity": "tables" if namespace else "bytes",
                "limit": 5 if namespace else 1024,
                "used": amount,
            }
            for (warehouse, namespace), amount in used.items()
        ]
        return [SparkReport(stack, {"limits": limits}, problem) for stack in stacks]

    return read_reports


def enforce(tenant: Tenant, bytes_used: int, tables: int = 0, problem: str = "") -> StackEnforcement:
    """Enforce limits as `lakewright enforce-limits` does, with these measurements."""
    project = load_project(tenant.folder)
    used = {("executions", None): bytes_used, ("executions", "other"): tables}
    return enforce_limits(project, select(project, Selection((tenant.name,))), measure(used, problem))[0]


def find_restrictions(tenant: Tenant) -> Any:
    """Return the archived warehouses and enforced limits, as `lakewright fleet status` reads them."""
    project = load_project(tenant.folder)
    return read_restrictions(project, select(project, Selection((tenant.name,))))[0]


def list_notes(tenant: Tenant) -> list[str]:
    """Return the notes of the drift check."""
    project = load_project(tenant.folder)
    return find_drift(project, select(project, Selection((tenant.name,)))).notes


def find_differences(tenant: Tenant) -> list[str]:
    """Return the names of resources with drift."""
    project = load_project(tenant.folder)
    report = find_drift(project, select(project, Selection((tenant.name,))))
    return [difference.resource for difference in report.differences()]


def test_writers_are_suspended_while_the_limit_is_reached(tenant: Tenant, openfga: httpx.Client) -> None:
    assert list_access(openfga) == KEPT | SUSPENDED
    assert enforce(tenant, 1023).suspended == []
    states = {file: file.read_bytes() for file in (tenant.folder / "state").rglob("*.json")}

    enforcement = enforce(tenant, 1024)

    assert (len(enforcement.suspended), enforcement.problems) == (3, [])
    assert list_access(openfga) == KEPT
    assert len(list_records(openfga)) == 1
    assert find_differences(tenant) == []
    restrictions = find_restrictions(tenant)
    assert [(limit.part, limit.quantity, limit.limit) for limit in restrictions.limits.reached] == [
        ("warehouse executions", "bytes", 1024)
    ]
    assert len(restrictions.limits.suspended) == 3
    assert any("a limit of warehouse executions is enforced: 1024 bytes since" in note for note in list_notes(tenant))
    assert "a limit of warehouse executions is reached: 3 grants are suspended" in tenant.output("preview")
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}
    assert {file: file.read_bytes() for file in states} == states

    assert enforce(tenant, 980).restored == [], "95 % of the limit is 972.8"
    assert list_access(openfga) == KEPT
    assert find_restrictions(tenant) == restrictions, "the time is that of the first measurement"
    enforcement = enforce(tenant, 972)

    assert (len(enforcement.restored), enforcement.problems) == (3, [])
    assert list_access(openfga) == KEPT | SUSPENDED
    assert list_records(openfga) == []
    assert find_restrictions(tenant).limits is None
    assert list_notes(tenant) == []


def test_limit_of_a_namespace_suspends_what_holds_in_it(tenant: Tenant, openfga: httpx.Client) -> None:
    enforce(tenant, 0, tables=5)

    expected = KEPT | {("analysts", "create", "executions.results")}
    assert list_access(openfga) == expected - {("cleaners", "modify", "executions")}, "exempt from the other limit only"
    enforce(tenant, 1024, tables=4)

    assert list_access(openfga) == KEPT, "4 of 5 tables end the enforcement of the namespace"


@pytest.mark.long
def test_up_gives_no_grant_back(tenant: Tenant, openfga: httpx.Client) -> None:
    enforce(tenant, 2000)
    tenant.spec["grants"] += [
        {"to": "user:oidc~ann", "privilege": "create", "on": {"warehouse": "executions"}},
        {"to": "user:oidc~ann", "privilege": "describe", "on": {"warehouse": "executions"}},
    ]
    tenant.spec["grants"].remove(GRANTS[2])
    tenant.write()

    output = tenant.output("up", "--yes")

    assert "is not granted to user oidc~ann yet: a limit of warehouse executions is reached" in output
    assert list_access(openfga) == KEPT | {("oidc~ann", "describe", "executions")}
    assert find_differences(tenant) == []
    assert len(enforce(tenant, 0).restored) == 3
    restored = SUSPENDED - {("analysts", "create", "executions.results")}
    assert list_access(openfga) == KEPT | restored | {
        ("oidc~ann", "describe", "executions"),
        ("oidc~ann", "create", "executions"),
    }
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}


@pytest.mark.long
def test_up_without_enforcement_ends_it(tenant: Tenant, openfga: httpx.Client) -> None:
    enforce(tenant, 2000)
    del tenant.spec["warehouses"][0]["limits"]
    tenant.write()

    tenant.up()

    assert list_access(openfga) == KEPT | SUSPENDED
    enforce(tenant, 2000)
    assert list_records(openfga) == []
    assert list_access(openfga) == KEPT | SUSPENDED


def test_grant_that_was_missing_before_remains_missing(tenant: Tenant, openfga: httpx.Client) -> None:
    role = next(r["id"] for r in openfga.get("/management/v1/role").json()["roles"] if r["name"] == "analysts")
    warehouses = openfga.get("/management/v1/warehouse").json()["warehouses"]
    warehouse = next(entry["id"] for entry in warehouses if entry["name"] == "executions")
    body = {"deletes": [{"type": "modify", "role": role}]}
    path = f"/management/v1/permissions/warehouse/{warehouse}/assignments"
    openfga.post(path, json=body).raise_for_status()

    enforce(tenant, 2000)
    enforce(tenant, 0)

    assert list_access(openfga) == KEPT | SUSPENDED - {("analysts", "modify", "executions")}
    assert len(find_differences(tenant)) == 1


def test_incomplete_measurement_ends_nothing(tenant: Tenant, openfga: httpx.Client) -> None:
    enforce(tenant, 2000, problem="table results.a could not be read")
    assert list_access(openfga) == KEPT

    enforcement = enforce(tenant, 0, problem="table results.a could not be read")

    assert list_access(openfga) == KEPT
    assert "so no enforcement of limits of data ends" in enforcement.problems[0]


@pytest.mark.long
@pytest.mark.parametrize("used", [2000, 0], ids=["begin", "end"])
def test_killed_run_is_completed(
    tenant: Tenant, openfga: httpx.Client, monkeypatch: pytest.MonkeyPatch, used: int
) -> None:
    """The run is killed at each of its changing calls: of the record, and of three grants."""
    for number in range(1, 6 if used else 5):
        enforce(tenant, 0 if used else 2000)
        with monkeypatch.context() as patch:
            kill_at_change(patch, number)
            with pytest.raises(KeyboardInterrupt):
                enforce(tenant, used)
        assert find_differences(tenant) == []

        enforcement = enforce(tenant, used)

        assert enforcement.problems == []
        assert list_access(openfga) == (KEPT if used else KEPT | SUSPENDED)
        assert len(list_records(openfga)) == (1 if used else 0)


def test_run_keeps_what_another_run_recorded(
    tenant: Tenant, openfga: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run grants again, and has granted one of three grants when another run measures a reached limit."""
    enforce(tenant, 2000)
    restore, other_runs = GrantProvider.restore, list[StackEnforcement]()

    def restore_between(self: GrantProvider, outs: dict[str, Any]) -> bool:
        is_restored = restore(self, outs)
        if not other_runs:
            monkeypatch.setattr(GrantProvider, "restore", restore)
            other_runs.append(enforce(tenant, 2000))
        return is_restored

    monkeypatch.setattr(GrantProvider, "restore", restore_between)
    enforcement = enforce(tenant, 0)

    assert [(len(run.suspended), run.problems) for run in other_runs] == [(1, [])]
    assert enforcement.problems == ["another run suspended grants at the same time; the next run continues"]
    assert len(list_access(openfga)) == len(KEPT | SUSPENDED) - 1
    assert len(find_restrictions(tenant).limits.suspended) == 3
    assert enforce(tenant, 0).problems == []
    assert list_access(openfga) == KEPT | SUSPENDED
    assert list_records(openfga) == []


def kill_at_change(patch: pytest.MonkeyPatch, number: int) -> None:
    """Kill this process at a request that changes something, counted from 1."""
    original, counted = Client.call, count(1)

    def call(self: Client, method: Any, *args: Any, **kwargs: Any) -> Any:
        if method != "GET" and next(counted) == number:
            raise KeyboardInterrupt
        return original(self, method, *args, **kwargs)

    patch.setattr(Client, "call", call)


def test_run_leaves_a_stack_that_is_updated(tenant: Tenant, openfga: httpx.Client) -> None:
    locks = tenant.folder / "state" / ".pulumi" / "locks" / "organization" / "lakewright" / tenant.name
    locks.mkdir(parents=True, exist_ok=True)
    lock = {"pid": 1, "username": "ann", "hostname": "elsewhere", "timestamp": "2040-07-01T00:00:00Z"}
    (locks / "a.json").write_text(json.dumps(lock))

    enforcement = enforce(tenant, 2000)

    assert "an update is running" in enforcement.problems[0]
    assert list_access(openfga) == KEPT | SUSPENDED


@pytest.mark.long
def test_spec_from_server_has_the_suspended_grants(tenant: Tenant) -> None:
    command = ["spec", "from-server", "--environment", "sandbox", "--project", tenant.name, "--name", "other"]
    file = tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml"
    text = file.read_text()

    def draft_spec() -> str:
        """Return the spec that follows from the server, as if the project had no stack."""
        file.unlink()
        state = {"PULUMI_BACKEND_URL": tenant.folder.as_uri()}
        draft = run_command(command, tenant.folder, {**os.environ, **state})
        file.write_text(text)
        assert draft.returncode == 0, draft.stderr
        return draft.stdout

    before = draft_spec()
    assert "privilege: modify" in before
    enforce(tenant, 2000)

    assert draft_spec() == before


@pytest.mark.long
def test_command_measures_usage(tenant: Tenant, openfga: httpx.Client) -> None:
    write_environment(tenant, openfga, jobs_auth={"kind": "token", "token": "env:STACK_TOKEN"})
    tenant.spec["warehouses"][0]["limits"] = {"tables": 1, "enforce": True}
    tenant.write()
    tenant.up()
    config = tenant.catalog_config().pyiceberg("raw") | {"warehouse": f"{tenant.name}/executions", "token": "operator"}
    catalog = load_catalog("executions", **config)
    assert "No limit is enforced." in tenant.output("enforce-limits")
    catalog.create_table("results.flights", schema=pa.schema([("n", pa.int64())]))

    printed = tenant.output("enforce-limits")

    assert f"{tenant.name}: limit of warehouse executions is enforced: 1 of 1 tables" in printed
    assert f"{tenant.name}: suspended {tenant.name}-role-analysts-modify-warehouse-executions" in printed
    assert list_access(openfga) == KEPT - {("cleaners", "modify", "executions")}
    catalog.purge_table("results.flights")
    document = json.loads(tenant.output("enforce-limits", "--json"))
    assert (document["exit"], len(document["stacks"][0]["restored"])) == (0, 4)
    assert list_access(openfga) == KEPT | SUSPENDED


@pytest.mark.long
def test_forged_record_grants_nothing(tenant: Tenant, openfga: httpx.Client) -> None:
    """A user who may change roles adds a grant to the record."""
    enforce(tenant, 2000)
    (record,) = list_records(openfga)
    mark = json.loads(record["description"])
    mark["suspended"].append({**mark["suspended"][0], "kind": "user", "principal": "oidc~eve"})
    body = {"name": record["name"], "description": json.dumps(mark)}
    openfga.post(f"/management/v1/role/{record['id']}", json=body).raise_for_status()

    enforce(tenant, 0)

    assert list_access(openfga) == KEPT | SUSPENDED


@pytest.mark.long
def test_destroy_deletes_the_record(tenant: Tenant, openfga: httpx.Client) -> None:
    for warehouse in tenant.spec["warehouses"]:
        warehouse["deletion"] = "purge"
    tenant.write()
    tenant.up()
    enforce(tenant, 2000)

    tenant.verb("destroy", "--yes")

    assert tenant.name not in {
        entry["project-id"] for entry in openfga.get("/management/v1/project-list").json()["projects"]
    }
