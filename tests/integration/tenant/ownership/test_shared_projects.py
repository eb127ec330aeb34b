"""Tenants that share Lakekeeper's default project with each other and with warehouses that other programs made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
from lakewright.project_files.stack_files import DEFAULT_PROJECT_ID
from lakewright_spark.cli import app
from typer.testing import CliRunner

from tests.integration.tenant.conftest import MakeTenant, Tenant, list_changes

pytestmark = pytest.mark.timeout(600)

ROWS = pa.table({"n": [1, 2, 3]})
SHARED = {"shared": True}
EMBEDDED = ("--engine", "embedded")
EMPTY_SCHEMA: dict[str, Any] = {"type": "struct", "fields": []}


def make_sharing_tenant(make_tenant: MakeTenant, deletion: str = "purge", **changes: Any) -> Tenant:
    """Return a tenant in the default project, whose warehouse has a unique name and a role."""
    warehouses = [{"name": "results", "namespaces": ["results"], "deletion": deletion}]
    tenant = make_tenant(project=SHARED, warehouses=warehouses, **changes)
    tenant.spec["warehouses"][0]["name"] = f"{tenant.name}-results"
    tenant.write()
    return tenant


def find_warehouse_name(tenant: Tenant) -> str:
    return str(tenant.spec["warehouses"][0]["name"])


def list_warehouses(lakekeeper: httpx.Client) -> dict[str, str]:
    """Return the ids of the warehouses in the default project by name."""
    warehouses = lakekeeper.get("/management/v1/warehouse").raise_for_status().json()["warehouses"]
    return {str(entry["name"]): str(entry["warehouse-id"]) for entry in warehouses}


def list_roles(lakekeeper: httpx.Client) -> dict[str, str]:
    """Return the descriptions of the roles in the default project by name."""
    roles = lakekeeper.get("/management/v1/role").raise_for_status().json()["roles"]
    return {str(role["name"]): str(role.get("description")) for role in roles}


def append_rows(tenant: Tenant) -> None:
    catalog = tenant.catalog(find_warehouse_name(tenant))
    catalog.create_table("results.flights", schema=ROWS.schema).append(ROWS)


def read_rows(tenant: Tenant) -> list[int]:
    return tenant.catalog(find_warehouse_name(tenant)).load_table("results.flights").scan().to_arrow()["n"].to_pylist()


def count_tables(usage: dict[str, Any]) -> dict[str, int]:
    """Return the number of tables by warehouse."""
    return {entry["warehouse"]: entry["tables"] for entry in usage["warehouses"]}


@pytest.fixture
def manual_warehouse(lakekeeper: httpx.Client, make_tenant: MakeTenant) -> Iterator[str]:
    """A warehouse of the default project that another program made, with a table; its name."""
    owner = make_tenant()
    owner.up()
    project = {"x-project-id": owner.name}
    (template,) = lakekeeper.get("/management/v1/warehouse", headers=project).json()["warehouses"]
    name = f"{owner.name}-manual"
    profile = template["storage-profile"] | {"key-prefix": name}
    body = {
        "warehouse-name": name,
        "project-id": DEFAULT_PROJECT_ID,
        "storage-profile": profile | {"sts-enabled": False, "assume-role-arn": None, "sts-role-arn": None},
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "aws-access-key-id": owner.sandbox.admin.access_key_id,
            "aws-secret-access-key": owner.sandbox.admin.secret_access_key.get_secret_value(),
        },
    }
    response = lakekeeper.post("/management/v1/warehouse", json=body)
    assert response.is_success, response.text
    warehouse_id = response.json()["warehouse-id"]
    namespace = f"/catalog/v1/{warehouse_id}/namespaces/by_hand"
    lakekeeper.post(f"/catalog/v1/{warehouse_id}/namespaces", json={"namespace": ["by_hand"]}).raise_for_status()
    lakekeeper.post(f"{namespace}/tables", json={"name": "empty", "schema": EMPTY_SCHEMA}).raise_for_status()
    yield name
    lakekeeper.delete(f"{namespace}/tables/empty", params={"purgeRequested": "false"}).raise_for_status()
    lakekeeper.delete(namespace).raise_for_status()
    lakekeeper.delete(f"/management/v1/warehouse/{warehouse_id}").raise_for_status()


def live_together(make_tenant: MakeTenant, lakekeeper: httpx.Client, manual: str, *engine: str, **environ: str) -> None:
    """Deploy two tenants beside a manual warehouse, destroy the first, and check that nothing else changed."""
    first, second = (make_sharing_tenant(make_tenant, standard_roles=True) for _ in range(2))
    for tenant in (first, second):
        tenant.environ = environ
        tenant.output("up", "--yes", *engine)
        tenant.output("up", "--yes", "--expect-no-changes", *engine)
        tenant.output("preview", "--refresh", "--expect-no-changes", *engine)
        append_rows(tenant)
    ids = list_warehouses(lakekeeper)
    assert {find_warehouse_name(first), find_warehouse_name(second), manual} <= ids.keys()
    record = f"lakewright-record-{ids[find_warehouse_name(second)]}"
    assert second.name in list_roles(lakekeeper)[record]

    first.output("destroy", "--yes", *engine)

    assert list_warehouses(lakekeeper).keys() == ids.keys() - {find_warehouse_name(first)}
    assert f"lakewright-record-{ids[find_warehouse_name(first)]}" not in list_roles(lakekeeper)
    assert read_rows(second) == [1, 2, 3]
    second.output("preview", "--refresh", "--expect-no-changes", *engine)
    second.output("destroy", "--yes", *engine)
    assert manual in list_warehouses(lakekeeper)


def test_tenants_share_the_default_project(
    make_tenant: MakeTenant, lakekeeper: httpx.Client, manual_warehouse: str
) -> None:
    live_together(make_tenant, lakekeeper, manual_warehouse, *EMBEDDED)


@pytest.mark.pulumi_cli
def test_tenants_share_the_default_project_on_the_cli(
    make_tenant: MakeTenant, lakekeeper: httpx.Client, manual_warehouse: str, attached_providers: dict[str, str]
) -> None:
    live_together(make_tenant, lakekeeper, manual_warehouse, "--engine", "pulumi", **attached_providers)


@pytest.mark.long
def test_protect_refuses_while_the_tenant_has_tables(
    make_tenant: MakeTenant, lakekeeper: httpx.Client, manual_warehouse: str
) -> None:
    """The refusal names the tables of the tenant only."""
    tenant, neighbour = (make_sharing_tenant(make_tenant, deletion="protect") for _ in range(2))
    for sharing_tenant in (tenant, neighbour):
        sharing_tenant.up()
        append_rows(sharing_tenant)

    error = " ".join(tenant.error("destroy", "--yes", *EMBEDDED).split())

    assert "nothing was destroyed, because `deletion` is `protect`" in error
    assert f"warehouse `{find_warehouse_name(tenant)}` holds 1 table: results.flights" in error
    assert find_warehouse_name(neighbour) not in error
    assert manual_warehouse not in error
    assert read_rows(tenant) == [1, 2, 3]
    tenant.verb("preview", "--refresh", "--expect-no-changes")


@pytest.mark.long
def test_protect_ignores_the_warehouses_of_other_owners(
    make_tenant: MakeTenant, lakekeeper: httpx.Client, manual_warehouse: str
) -> None:
    """Neither another tenant's tables nor a manual warehouse keep an empty tenant from being destroyed."""
    tenant, neighbour = (make_sharing_tenant(make_tenant, deletion="protect") for _ in range(2))
    for sharing_tenant in (tenant, neighbour):
        sharing_tenant.up()
    append_rows(neighbour)
    lakekeeper.post("/management/v1/role", json={"name": f"{tenant.name}-by-hand"}).raise_for_status()

    tenant.output("destroy", "--yes", *EMBEDDED)

    assert find_warehouse_name(tenant) not in list_warehouses(lakekeeper)
    assert {find_warehouse_name(neighbour), manual_warehouse} <= list_warehouses(lakekeeper).keys()
    assert f"{tenant.name}-by-hand" in list_roles(lakekeeper)
    assert read_rows(neighbour) == [1, 2, 3]


@pytest.mark.long
def test_usage_counts_the_warehouses_of_each_tenant(
    make_tenant: MakeTenant, manual_warehouse: str, tmp_path: Path
) -> None:
    """A warehouse of another tenant counts for that tenant, and a manual warehouse for no tenant."""
    tenant, neighbour = (make_sharing_tenant(make_tenant, limits={"tables": 4}) for _ in range(2))
    neighbour.folder = tenant.folder
    neighbour.write()
    neighbour.output("stack", "init")
    for sharing_tenant in (tenant, neighbour):
        sharing_tenant.up()
        append_rows(sharing_tenant)
    neighbour.catalog(find_warehouse_name(neighbour)).create_table("results.more", schema=ROWS.schema)
    file = tmp_path / "config.json"
    file.write_text(tenant.output("config", "--format", "json"))

    measured = CliRunner().invoke(app, ["usage", "--config", str(file), "--json"])
    of_fleet = json.loads(neighbour.output("fleet", "usage", "--stack", tenant.name, "--json"))

    of_jobs = json.loads(measured.stdout)
    table_counts = {tenant.name: 1, neighbour.name: 2}
    usages = {stack["stack"]: stack["usage"] for stack in of_fleet["stacks"]}
    assert count_tables(of_jobs) == {find_warehouse_name(tenant): 1}
    assert count_tables(usages[tenant.name]) == {find_warehouse_name(tenant): 1}
    assert count_tables(usages[neighbour.name]) == {find_warehouse_name(neighbour): 2}
    assert {name: usage["total"]["tables"] for name, usage in usages.items()} == table_counts
    assert {name: usage["limits"][0]["used"] for name, usage in usages.items()} == table_counts
    assert {owner["owner"]: owner["tables"] for owner in of_fleet["owners"]} == table_counts
    assert manual_warehouse not in json.dumps([of_jobs, of_fleet])


def test_a_shared_project_must_exist(make_tenant: MakeTenant) -> None:
    tenant = make_sharing_tenant(make_tenant)
    tenant.spec["project"] = {"shared": True, "id": f"missing-{uuid4().hex[:8]}"}
    tenant.write()

    for verb in (("preview",), ("up", "--yes")):
        error = tenant.error(*verb, *EMBEDDED)
        assert "does not exist, and a stack never creates a project with `shared: true`" in error


def test_a_tenants_own_project_cannot_be_shared(make_tenant: MakeTenant) -> None:
    owner = make_tenant()
    owner.up()
    tenant = make_sharing_tenant(make_tenant)
    tenant.spec["project"] = {"shared": True, "id": owner.name}
    tenant.write()

    error = tenant.error("preview", *EMBEDDED)

    assert "cannot be shared: it belongs to stack" in error
    assert owner.name in error


def test_a_tenant_keeps_its_own_project(make_tenant: MakeTenant) -> None:
    """A tenant that starts to share a project would lose its own."""
    tenant = make_tenant()
    tenant.up()
    tenant.spec["project"] = SHARED
    tenant.write()

    for verb in (("preview",), ("up", "--yes")):
        assert "a warehouse cannot move to another project" in " ".join(tenant.error(*verb, *EMBEDDED).split())
    tenant.spec.pop("project")
    tenant.write()
    tenant.verb("preview", "--refresh", "--expect-no-changes")


@pytest.mark.long
def test_foreign_warehouses_are_not_adopted(
    make_tenant: MakeTenant, lakekeeper: httpx.Client, manual_warehouse: str
) -> None:
    """Neither another tenant's warehouse nor a manual warehouse is taken over by its name."""
    owner = make_sharing_tenant(make_tenant)
    owner.up()
    append_rows(owner)
    for name in (find_warehouse_name(owner), manual_warehouse):
        thief = make_sharing_tenant(make_tenant)
        thief.spec["warehouses"][0]["name"] = name
        thief.write()
        assert "exists already" in thief.error("preview", *EMBEDDED)
        thief.spec["adopt"] = True
        thief.write()
        for verb in (("preview",), ("up", "--yes")):
            error = " ".join(thief.error(*verb, *EMBEDDED).split())
            assert f"warehouse `{name}` in project {DEFAULT_PROJECT_ID}" in error
            assert "`adopt` in the spec is not sufficient" in error
        thief.output("destroy", "--yes", *EMBEDDED)
    assert read_rows(owner) == [1, 2, 3]
    assert manual_warehouse in list_warehouses(lakekeeper)
    owner.verb("preview", "--refresh", "--expect-no-changes")


def test_a_copied_state_deletes_no_shared_warehouse(make_tenant: MakeTenant) -> None:
    owner = make_sharing_tenant(make_tenant)
    owner.up()
    append_rows(owner)
    copy = make_sharing_tenant(make_tenant)
    exported = json.loads(owner.output("stack", "export"))
    text = json.dumps(exported).replace(f"urn:pulumi:{owner.name}::", f"urn:pulumi:{copy.name}::")
    file = copy.folder / "copied.json"
    file.write_text(text)
    copy.output("stack", "import", "--file", str(file))

    error = copy.error("destroy", "--yes", *EMBEDDED)

    assert "belongs to stack" in error
    assert read_rows(owner) == [1, 2, 3]


@pytest.mark.long
def test_retained_warehouse_is_adopted_again(make_tenant: MakeTenant) -> None:
    tenant = make_sharing_tenant(make_tenant, deletion="retain", standard_roles=True)
    tenant.up()
    append_rows(tenant)
    tenant.output("destroy", "--yes", *EMBEDDED)

    assert "exists already" in tenant.error("preview", *EMBEDDED)
    tenant.spec["adopt"] = True
    tenant.write()
    tenant.up()

    assert read_rows(tenant) == [1, 2, 3]
    tenant.verb("preview", "--refresh", "--expect-no-changes")


@pytest.mark.long
def test_drift_reports_only_the_tenants_own_objects(
    make_tenant: MakeTenant, lakekeeper: httpx.Client, manual_warehouse: str
) -> None:
    tenant = make_sharing_tenant(make_tenant)
    tenant.up()
    lakekeeper.post("/management/v1/role", json={"name": f"{tenant.name}-by-hand"}).raise_for_status()

    assert tenant.run("drift").returncode == 0
    warehouse_id = list_warehouses(lakekeeper)[find_warehouse_name(tenant)]
    record = f"lakewright-record-{warehouse_id}"
    (role_id,) = [
        role["id"] for role in lakekeeper.get("/management/v1/role").json()["roles"] if role["name"] == record
    ]
    lakekeeper.delete(f"/management/v1/role/{role_id}").raise_for_status()
    changes = list_changes(tenant.verb("preview", "--refresh"))
    assert [change[:2] for change in changes] == [("update", "Warehouse")], "the mark is written again"
    tenant.up("--refresh")
    assert tenant.name in list_roles(lakekeeper)[record]


@pytest.mark.long
def test_drift_reports_namespaces_in_the_tenants_warehouse(make_tenant: MakeTenant, lakekeeper: httpx.Client) -> None:
    tenant, neighbour = (make_sharing_tenant(make_tenant) for _ in range(2))
    for sharing_tenant in (tenant, neighbour):
        sharing_tenant.up()
        warehouse_id = list_warehouses(lakekeeper)[find_warehouse_name(sharing_tenant)]
        namespace = {"namespace": ["by_hand"]}
        lakekeeper.post(f"/catalog/v1/{warehouse_id}/namespaces", json=namespace).raise_for_status()

    completed = tenant.run("drift", "--unmanaged-tables", "--json")

    differences = json.loads(completed.stdout)["stacks"][0]["differences"]
    assert completed.returncode == 7
    assert [(entry["kind"], entry["resource"]) for entry in differences] == [
        ("unmanaged", f"{find_warehouse_name(tenant)}.by_hand")
    ]


@pytest.mark.long
def test_destroy_releases_warehouses_that_were_retained_before(make_tenant: MakeTenant) -> None:
    tenant = make_sharing_tenant(make_tenant, deletion="retain")
    tenant.up()
    append_rows(tenant)
    retained = tenant.spec["warehouses"]
    tenant.spec["warehouses"] = [{"name": f"{tenant.name}-more", "deletion": "purge"}]
    tenant.write()
    tenant.up()
    tenant.output("destroy", "--yes", *EMBEDDED)

    tenant.spec |= {"warehouses": retained, "adopt": True}
    tenant.write()
    tenant.up()

    assert read_rows(tenant) == [1, 2, 3]
