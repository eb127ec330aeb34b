"""A tenant whose stack is lost: its spec is read from the servers, and adopting it changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import yaml
from lakewright.ownership.record_role import exclude_record_roles

from tests.command_server import run_command
from tests.integration.tenant.conftest import PASSPHRASE, MakeTenant, Tenant, make_bucket_and_role

pytestmark = pytest.mark.stand_in("reads the sandbox's roles and buckets")

TYPES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(12,2)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "fixed[16]",
    "binary",
    "list<string>",
    "map<string, long>",
    "struct<a: int, b: list<double>>",
)
STORE = ("--access-key", "env:STORE_ID", "--secret-key", "env:STORE_SECRET")


def run_from_server(tenant: Tenant, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `lakewright spec from-server` in the tenant's project."""
    env = os.environ | tenant.environ
    env |= {"PULUMI_BACKEND_URL": (tenant.folder / "state").as_uri(), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
    return run_command(["spec", "from-server", *arguments], tenant.folder, env)


def read_objects(lakekeeper: httpx.Client, tenant: Tenant) -> dict[str, Any]:
    """Return the server's objects of a tenant, without times of changes and the mark of the owning stack."""
    project = {"x-project-id": tenant.name}

    def get(path: str) -> Any:
        return lakekeeper.get(path, headers=project).raise_for_status().json()

    roles = get("/management/v1/role")["roles"]
    objects: dict[str, Any] = {"project": get("/management/v1/project"), "roles": exclude_record_roles(roles)}
    for warehouse in get("/management/v1/warehouse")["warehouses"]:
        name, warehouse_id = warehouse["name"], warehouse["warehouse-id"]
        objects[name] = {key: value for key, value in warehouse.items() if key != "updated-at"}
        for queue in ("tabular_expiration", "tabular_purge"):
            objects[f"{name} {queue}"] = get(f"/management/v1/warehouse/{warehouse_id}/task-queue/{queue}/config")
        root = f"/catalog/v1/{warehouse_id}/namespaces"
        for (namespace,) in get(root)["namespaces"]:
            objects[f"{name}.{namespace}"] = get(f"{root}/{namespace}")
            for table in get(f"{root}/{namespace}/tables")["identifiers"]:
                loaded = get(f"{root}/{namespace}/tables/{table['name']}")
                objects[f"{name}.{namespace}.{table['name']}"] = loaded["metadata"]
    return objects


def forget(tenant: Tenant) -> None:
    """Lose the stack's state and file."""
    shutil.rmtree(tenant.folder / "state")
    (tenant.folder / "state").mkdir()
    (tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml").unlink()


@pytest.fixture
def tenant(make_tenant: MakeTenant, aws: Callable[..., Any]) -> Tenant:
    """A deployed tenant with its own bucket and role, and a bucket in a store."""
    tenant = make_tenant()
    admin = tenant.sandbox.admin
    tenant.environ |= {"STORE_ID": admin.access_key_id, "STORE_SECRET": admin.secret_access_key.get_secret_value()}
    make_bucket_and_role(tenant, aws, "external-id-of-the-tenant")
    aws("s3").create_bucket(Bucket=f"{tenant.name}-store")
    tenant.spec["storage"]["store"] = {
        "backend": "s3",
        "bucket": f"{tenant.name}-store",
        "endpoint": tenant.sandbox.aws.endpoint,
        "region": tenant.sandbox.aws.region,
        "credential": {"access_key_id": "env:STORE_ID", "secret_access_key": "env:STORE_SECRET"},
    }
    columns = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(TYPES)]
    day = {"name": "at", "type": "timestamptz", "required": True}
    tenant.spec["warehouses"] = [
        {"name": "executions", "storage": "main", "namespaces": {"preset": "texera"}, "soft_delete_days": 7},
        {
            "name": "curated",
            "storage": "store",
            "namespaces": ["sales"],
            "remote_signing": True,
            "task_queues": {"tabular_purge": {"max_seconds_since_last_heartbeat": 900}},
        },
        {"name": "signed", "storage": "store", "delegation": "remote-signing", "key_prefix": "elsewhere"},
    ]
    tenant.spec["tables"] = [
        {
            "name": "curated.sales.orders",
            "columns": [day, *columns],
            "partition_by": ["days(at)", "bucket(8, c2) as shard"],
            "sort_by": ["at desc nulls last"],
            "properties": {"comment": "x"},
            "policies": {"history": {"max_age_days": 7}},
        },
        {"name": "curated.sales.three", "columns": [{"name": "n", "type": "timestamp_ns"}], "format_version": 3},
    ]
    tenant.spec["views"] = [
        {
            "name": "curated.sales.shards",
            "columns": [{"name": "shard", "type": "int"}, {"name": "tags", "type": "list<string>"}],
            "sql": {"spark": "SELECT shard, tags FROM orders", "trino": "SELECT shard, tags FROM lake.sales.orders"},
            "default_catalog": "lake",
            "properties": {"comment": "x"},
            "protected": True,
        },
    ]
    tenant.write()
    tenant.up()
    return tenant


def test_lost_stack_is_read_back_and_adopted(tenant: Tenant, lakekeeper: httpx.Client) -> None:
    """The first preview and `up` change nothing on the server, and there is no drift afterwards."""
    before = read_objects(lakekeeper, tenant)
    managed = run_from_server(tenant, "--project", tenant.name)
    forget(tenant)
    file = tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml"
    (tenant.folder / "schema").mkdir()
    (tenant.folder / "schema" / "tenant.schema.json").write_text("{}")

    written = run_from_server(
        tenant, "--project", tenant.name, "--owner", "tests", *STORE, "--output", str(file), "--json"
    )
    tenant.output("stack", "init")
    # The new stack has another record, so the marks of the lost stack do not prove that it owns the objects.
    tenant.environ["LAKEWRIGHT_ADOPT"] = f"project={tenant.name},bucket={tenant.name}-store"
    preview = tenant.verb("preview")
    tenant.up()

    assert (managed.returncode, f"is managed by stack {tenant.name}" in managed.stderr) == (2, True), managed.stderr
    assert written.returncode == 0, written.stderr
    assert "\n# yaml-language-server: $schema=../schema/tenant.schema.json\n" in file.read_text()
    report = json.loads(written.stdout)["tenants"][0]
    assert yaml.safe_load(file.read_text())["config"]["lakewright:tenant"] == report["spec"]
    namespaces = {entry["name"]: entry.get("namespaces") for entry in report["spec"]["warehouses"]}
    assert namespaces == {"executions": {"preset": "texera"}, "curated": ["sales"], "signed": None}
    assert report["open_references"] == []
    assert report["spec"]["views"] == tenant.spec["views"]
    assert {storage["backend"] for storage in report["spec"]["storage"].values()} == {"s3", "existing"}
    summary = [line for line in preview["messages"] if "adoption:" in line]
    assert len(summary) == 1
    assert summary[0].endswith("objects exist already and are taken over, none of them changes")
    assert read_objects(lakekeeper, tenant) == before
    tenant.output("preview", "--refresh", "--expect-no-changes")


def test_objects_of_other_users_are_unmanaged(tenant: Tenant, lakekeeper: httpx.Client) -> None:
    """Other users' roles, warehouses and queue settings are drift; tables of jobs are drift only on request."""
    project = {"x-project-id": tenant.name}
    (curated,) = [
        entry
        for entry in lakekeeper.get("/management/v1/warehouse", headers=project).json()["warehouses"]
        if entry["name"] == "curated"
    ]
    warehouse = f"/management/v1/warehouse/{curated['warehouse-id']}"
    clean = tenant.run("drift", "--json")
    lakekeeper.post("/management/v1/role", headers=project, json={"name": "stray"}).raise_for_status()
    settings = {"queue-config": {}, "max-seconds-since-last-heartbeat": 60}
    lakekeeper.post(f"{warehouse}/task-queue/tabular_expiration/config", json=settings).raise_for_status()
    response = lakekeeper.get(f"/catalog/v1/{curated['warehouse-id']}/namespaces/sales?returnUuid=true").json()
    namespace = f"{warehouse}/namespace/{response.get('namespace-uuid') or response['properties']['namespace_id']}"
    lakekeeper.post(f"{namespace}/protection", json={"protected": True}).raise_for_status()
    lakekeeper.post(
        f"/catalog/v1/{curated['warehouse-id']}/namespaces", json={"namespace": ["jobs"]}
    ).raise_for_status()

    drifted = tenant.run("drift", "--json")
    with_tables = tenant.run("drift", "--json", "--unmanaged-tables")

    assert (clean.returncode, drifted.returncode) == (0, 7), clean.stdout + drifted.stdout
    assert _list_unmanaged(drifted) == {
        ("Role", "stray", ""),
        ("TaskQueueConfig", "soft_deletion of warehouse curated", ""),
        ("Namespace", "curated.sales", "protected"),
    }
    assert _list_unmanaged(with_tables) - _list_unmanaged(drifted) == {("Namespace", "curated.jobs", "")}


def _list_unmanaged(completed: subprocess.CompletedProcess[str]) -> set[tuple[str, str, str]]:
    (stack,) = json.loads(completed.stdout)["stacks"]
    assert stack["problems"] == []
    return {
        (entry["type"].rpartition(":")[2], entry["resource"], entry["property"])
        for entry in stack["differences"]
        if entry["kind"] == "unmanaged"
    }
