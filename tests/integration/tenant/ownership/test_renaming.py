"""Renamed warehouses keep their data, and no warehouse with tables leaves the spec by mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.integration.tenant.conftest import list_changes

pytestmark = pytest.mark.timeout(300)

ROWS = pa.table({"n": [1, 2, 3]})
ORDERS = {"name": "executions.results.orders", "columns": [{"name": "id", "type": "int"}]}


def fill(tenant: Any, warehouse: str) -> None:
    tenant.catalog(warehouse).create_table("results.flights", schema=ROWS.schema).append(ROWS)


def read(tenant: Any, warehouse: str) -> list[int]:
    return tenant.catalog(warehouse).load_table("results.flights").scan().to_arrow()["n"].to_pylist()


def rename(tenant: Any, old: str, new: str, *, is_declared: bool = True) -> None:
    """Rename the only warehouse of a spec wherever the spec names it."""
    warehouse = tenant.spec["warehouses"][0] | {"name": new, "renamed_from": old}
    tenant.spec["warehouses"] = [
        warehouse if is_declared else {k: v for k, v in warehouse.items() if k != "renamed_from"}
    ]
    for unit in tenant.spec.get("computing_units", []):
        unit["warehouse"] = new
    for table in tenant.spec.get("tables", []):
        table["name"] = table["name"].replace(f"{old}.", f"{new}.")
    tenant.write()


def read_refusal(tenant: Any, *arguments: str) -> str:
    """Return the message of a command that must be refused."""
    return " ".join(tenant.error(*arguments, "--engine", "embedded").split())


def resources(tenant: Any) -> dict[str, Any]:
    """Return the inputs of the resources in the state, by URN."""
    deployment = json.loads(tenant.output("stack", "export"))["deployment"]
    # The provider of dynamic resources holds the stack's configuration.
    return {
        resource["urn"]: resource.get("inputs")
        for resource in deployment["resources"]
        if ":providers:" not in resource["urn"]
    }


def deploy_with_table(make_tenant: Callable[..., Any], deletion: str = "protect", **more: Any) -> Any:
    """Deploy a tenant with a job's table in its warehouse `executions`."""
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": deletion}], **more)
    tenant.up()
    fill(tenant, "executions")
    return tenant


@pytest.mark.long
def test_renamed_warehouse_keeps_its_contents(make_tenant: Callable[..., Any], lakekeeper: Any) -> None:
    tenant = deploy_with_table(
        make_tenant,
        tables=[dict(ORDERS)],
        computing_units=[{"name": "notebook", "runtime": "spark", "warehouse": "executions"}],
    )
    before = tenant.verb("preview")["outputs"]
    rename(tenant, "executions", "curated")

    previewed = tenant.verb("preview")
    after = tenant.up()["outputs"]

    # The Kubernetes provider replaces a ConfigMap whose data changes.
    assert {operation for operation, kind, _ in list_changes(previewed) if kind != "ConfigMap"} == {"update"}
    assert ("update", "Warehouse", f"{tenant.name}-curated") in list_changes(previewed)
    assert after["warehouse_ids"]["curated"] == before["warehouse_ids"]["executions"]
    makes_roles = tenant.spec["storage"]["main"]["backend"] == "aws"
    assert ("curated" in after["role_arns"]) == makes_roles
    assert after["role_arns"].get("curated") == before["role_arns"].get("executions")
    assert read(tenant, "curated") == [1, 2, 3]
    live_warehouse = lakekeeper.get(f"/management/v1/warehouse/{after['warehouse_ids']['curated']}").json()
    assert live_warehouse["storage-profile"]["key-prefix"] == f"{tenant.name}/executions"
    del tenant.spec["warehouses"][0]["renamed_from"]
    tenant.write()
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()
    rename(tenant, "curated", "published")
    published = tenant.up()["outputs"]["role_arns"]
    assert ("published" in published) == makes_roles
    assert published.get("published") == before["role_arns"].get("executions")
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()


@pytest.mark.stand_in("looks up roles on AWS")
def test_new_warehouse_adopts_no_role_of_a_renamed_one(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """It has the first name of the renamed warehouse, whose role keeps that name."""
    tenant = make_tenant()
    tenant.up()
    rename(tenant, "executions", "curated")
    before = tenant.up()["outputs"]["role_arns"]
    tenant.spec["warehouses"] = [{"name": "curated"}, {"name": "executions", "adopt": True}]
    tenant.write()

    after = tenant.up()["outputs"]["role_arns"]

    assert after["curated"] == before["curated"]
    names = [role["RoleName"] for role in aws("iam").list_roles()["Roles"] if f".{tenant.name}." in role["RoleName"]]
    assert sorted(names) == [f"lakewright.{tenant.name}.executions", f"lakewright.{tenant.name}.executions-2"]


@pytest.mark.long
def test_protected_warehouse_cannot_leave_the_spec(make_tenant: Callable[..., Any]) -> None:
    unit = {"name": "notebook", "runtime": "spark", "warehouse": "executions"}
    tenant = deploy_with_table(make_tenant, computing_units=[unit])
    spec = tenant.spec["warehouses"]
    before = resources(tenant)
    rename(tenant, "executions", "curated", is_declared=False)

    for command in (["preview"], ["up", "--yes"]):
        message = read_refusal(tenant, *command)
        assert "HoldsTablesError: warehouse `executions` is no longer in the spec" in message
        assert "1 table: results.flights" in message
        assert "give the warehouse with the new name `renamed_from: executions`" in message

    assert resources(tenant) == before
    tenant.spec |= {"warehouses": spec, "computing_units": [unit | {"warehouse": "executions"}]}
    tenant.write()
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()


@pytest.mark.long
def test_purged_warehouse_is_dropped_alone(make_tenant: Callable[..., Any]) -> None:
    tenant = deploy_with_table(make_tenant, deletion="purge")
    rename(tenant, "executions", "curated", is_declared=False)

    message = read_refusal(tenant, "preview")

    assert "HoldsTablesError: warehouse `executions` leaves the spec while `curated` joins it" in message
    assert "name it in `dropped_warehouses`" in message
    assert "warehouse `executions` leaves" in read_refusal(tenant, "up", "--yes")
    tenant.spec["dropped_warehouses"] = ["executions"]
    tenant.write()
    assert list(tenant.up()["outputs"]["warehouse_ids"]) == ["curated"]


@pytest.mark.long
def test_documented_steps_resolve_a_rename_conflict(make_tenant: Callable[..., Any]) -> None:
    """After a refused rename without `renamed_from`, the new warehouse exists, empty, beside the old warehouse."""
    tenant = deploy_with_table(make_tenant)
    (old,) = tenant.spec["warehouses"]
    tenant.spec["warehouses"] = [old, old | {"name": "curated"}]
    tenant.write()
    ids = tenant.up()["outputs"]["warehouse_ids"]
    tenant.spec["warehouses"] = [old | {"name": "curated"}]
    tenant.write()
    assert "HoldsTablesError: warehouse `executions`" in read_refusal(tenant, "up", "--yes")

    tenant.spec["warehouses"] = [old]
    tenant.write()
    tenant.up()
    rename(tenant, "executions", "curated")
    after = tenant.up()["outputs"]["warehouse_ids"]

    assert after == {"curated": ids["executions"]}
    assert read(tenant, "curated") == [1, 2, 3]


@pytest.mark.long
def test_half_finished_rename_is_continued(make_tenant: Callable[..., Any], lakekeeper: Any) -> None:
    """The server has the new name, and the state still has the old name."""
    tenant = deploy_with_table(make_tenant)
    warehouse = tenant.verb("preview")["outputs"]["warehouse_ids"]["executions"]
    lakekeeper.post(f"/management/v1/warehouse/{warehouse}/rename", json={"new-name": "curated"}).raise_for_status()
    rename(tenant, "executions", "curated")

    assert tenant.up()["outputs"]["warehouse_ids"] == {"curated": warehouse}

    assert read(tenant, "curated") == [1, 2, 3]
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()
