"""A tenant that `deletion: retain` left is adopted by an `up` with `adopt`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.integration.tenant.conftest import MakeTenant, Tenant
from tests.tenant_project import list_changes

pytestmark = pytest.mark.timeout(600)

TABLE = {"name": "executions.results.declared", "columns": [{"name": "id", "type": "long", "required": True}]}


def deploy_and_retain(make_tenant: MakeTenant) -> Tenant:
    """Return a tenant whose stack was destroyed with `deletion: retain`: its data exists, its state is empty."""
    tenant = make_tenant(
        storage={"main": {"backend": "aws", "bucket": "PLACEHOLDER", "encryption": {"kms": "own"}}},
        warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "retain"}],
        tables=[TABLE],
    )
    tenant.spec["storage"]["main"]["bucket"] = f"{tenant.name}-lakehouse"
    tenant.write()
    tenant.up()
    flights = tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    flights.append(pa.table({"n": [1, 2, 3]}))
    assert_reported_as_retained(tenant.verb("destroy", "--preview-only"))
    assert_reported_as_retained(tenant.verb("destroy", "--yes"))
    return tenant


def assert_reported_as_retained(result: dict[str, Any]) -> None:
    """Check that a destroy, or its preview, names the remaining objects. The record and the guard have no object."""
    retained = {kind for op, kind, _ in list_changes(result) if op == "retain"}
    assert retained >= {"Project", "Warehouse", "Namespace", "Table", "Bucket", "Key", "Role", "TenantWarehouse"}
    deleted = {kind for op, kind, _ in list_changes(result) if op == "delete"}
    assert not retained & deleted
    assert {"TenantRecord", "DeletionGuard"} <= deleted
    assert result["changes"]["retain"] == sum(step["op"] == "retain" for step in result["steps"])


def assert_adopted(tenant: Tenant, aws: Callable[..., Any], keys: int) -> None:
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    flights = tenant.catalog("executions").load_table("results.flights")
    assert flights.scan().to_arrow()["n"].to_pylist() == [1, 2, 3]
    flights.append(pa.table({"n": [4]}))
    assert len(aws("kms").list_keys()["Keys"]) == keys
    assert len([role for role in aws("iam").list_roles()["Roles"] if tenant.name in role["RoleName"]]) == 1


@pytest.mark.long
def test_retained_tenant_is_adopted(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    tenant = deploy_and_retain(make_tenant)
    keys = len(aws("kms").list_keys()["Keys"])

    refusal = tenant.error("up", "--yes", "--engine", "embedded")

    assert f"An earlier stack `lakewright/{tenant.name}` was destroyed and retained them." in refusal
    for name in (f"project {tenant.name} at", "warehouse `executions`", tenant.spec["storage"]["main"]["bucket"]):
        assert name in refusal
    assert f"IAM role `lakewright.{tenant.name}.executions`" in refusal
    command = f"lakewright up --stack {tenant.name}"
    assert f"set `adopt: true` in Pulumi.{tenant.name}.yaml and run `{command}`." in refusal
    assert tenant.list_resource_kinds() == set(), "nothing is created"
    assert len(aws("kms").list_keys()["Keys"]) == keys

    tenant.spec["adopt"] = True
    tenant.write()
    steps = tenant.up()["steps"]

    # The update gives the bucket the tag of this stack's record.
    assert {"adopt", "update"} == {step["op"] for step in steps if step["type"] == "aws:s3/bucket:Bucket"}
    del tenant.spec["adopt"]
    tenant.write()
    assert_adopted(tenant, aws, keys)


@pytest.mark.long
def test_failed_attempts_leave_no_keys(
    make_tenant: MakeTenant, aws: Callable[..., Any], lakekeeper: httpx.Client
) -> None:
    """A conflict makes each `up` fail; the stack is destroyed in between."""
    tenant = deploy_and_retain(make_tenant)
    keys = len(aws("kms").list_keys()["Keys"])
    tenant.spec["adopt"] = True
    columns = tenant.spec["tables"][0]["columns"]
    tenant.spec["tables"][0]["columns"] = [{"name": "other", "type": "string"}]
    tenant.write()
    for _ in range(2):
        assert tenant.run("up", "--yes", "--engine", "embedded").returncode != 0
        assert len(aws("kms").list_keys()["Keys"]) == keys
        tenant.verb("destroy", "--yes")

    tenant.spec["tables"][0]["columns"] = columns
    tenant.write()
    tenant.up()
    assert_adopted(tenant, aws, keys)


@pytest.mark.pulumi_cli
@pytest.mark.timeout(900)
def test_retained_tenant_is_adopted_on_the_cli(
    make_tenant: MakeTenant, aws: Callable[..., Any], attached_providers: dict[str, str]
) -> None:
    tenant = deploy_and_retain(make_tenant)
    keys = len(aws("kms").list_keys()["Keys"])
    tenant.environ = attached_providers
    tenant.spec["adopt"] = True
    tenant.write()

    tenant.output("up", "--yes", "--engine", "pulumi")

    assert_adopted(tenant, aws, keys)
