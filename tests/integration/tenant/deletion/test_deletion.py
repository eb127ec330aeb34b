"""Destroying a tenant with data: `protect` refuses, `retain` keeps, `purge` removes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.real_servers import RealServers
from tests.tenant_project import list_changes

pytestmark = pytest.mark.timeout(300)


def tenant_with_table(make_tenant: Callable[..., Any], **warehouse: Any) -> Any:
    """Return a deployed tenant with one table that has three rows."""
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], **warehouse}])
    tenant.up()
    table = tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1, 2, 3]}))
    return tenant


def test_protect_refuses_first_and_names_the_tables(make_tenant: Callable[..., Any]) -> None:
    tenant = tenant_with_table(make_tenant, deletion="protect")

    completed = tenant.run("destroy", "--yes", "--engine", "embedded")

    assert completed.returncode != 0
    message = completed.stdout + completed.stderr
    assert "flights" in message
    assert "Traceback" not in message
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    assert tenant.catalog("executions").load_table("results.flights").scan().to_arrow().num_rows == 3


def test_protect_counts_soft_deleted_tables(make_tenant: Callable[..., Any]) -> None:
    tenant = tenant_with_table(make_tenant, deletion="protect", soft_delete_days=7)
    tenant.catalog("executions").drop_table("results.flights")

    completed = tenant.run("destroy", "--yes", "--engine", "embedded")

    assert completed.returncode != 0
    assert "flights" in completed.stdout + completed.stderr


@pytest.mark.parametrize("soft_delete_days", [None, pytest.param(7, marks=pytest.mark.long)])
def test_purge_deletes_everything_in_catalog_and_s3(
    make_tenant: Callable[..., Any],
    aws: Callable[..., Any],
    lakekeeper: Any,
    real: RealServers | None,
    soft_delete_days: int | None,
) -> None:
    tenant = tenant_with_table(make_tenant, deletion="purge", soft_delete_days=soft_delete_days)
    second = tenant.catalog("executions").create_table("results.second", schema=pa.schema([("n", pa.int64())]))
    tenant.catalog("executions").drop_table("results.second")
    # Dropping a table without a purge leaves files that no catalog knows.
    dropped_location = None if soft_delete_days else second.location().partition(f"{tenant.bucket}/")[2]

    destroyed = tenant.verb("destroy", "--yes")

    # The option `retain_on_delete` of the bucket and its settings does not count: `BucketRemoval` deletes them.
    assert "retain" not in destroyed["changes"]
    projects = lakekeeper.get("/management/v1/project-list").json()["projects"]
    assert tenant.name not in [project["project-id"] for project in projects]
    if real:  # The stack did not make this bucket, so it is kept.
        objects = aws("s3").list_objects_v2(Bucket=tenant.bucket).get("Contents", [])
        mine = [entry["Key"] for entry in objects if tenant.name in entry["Key"]]
        assert not [key for key in mine if not (dropped_location and key.startswith(f"{dropped_location}/"))]
    else:
        assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]
        assert not [role for role in aws("iam").list_roles()["Roles"] if tenant.name in role["RoleName"]]
    assert not list((tenant.folder / "rendered").rglob("*.yaml"))


def test_destroy_reads_the_state_without_the_stack_file(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    tenant = tenant_with_table(make_tenant, deletion="purge")
    file = tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml"
    file.unlink()

    destroyed = tenant.run("destroy", "--yes", "--engine", "embedded")

    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr
    assert f"warning: {file} does not exist, so the owner of each object is compared only when" in destroyed.stderr
    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


def test_retain_keeps_the_data_readable(make_tenant: Callable[..., Any]) -> None:
    tenant = tenant_with_table(make_tenant, deletion="retain")
    catalog = tenant.catalog("executions")

    text = tenant.output("destroy", "--yes", "--engine", "embedded")

    assert f"Warehouse  {tenant.name}-executions  retained" in text
    assert f"Warehouse  {tenant.name}-executions  deleted" not in text
    assert " retained\n" in text.partition("Resources:")[2]
    assert catalog.load_table("results.flights").scan().to_arrow()["n"].to_pylist() == [1, 2, 3]
    preview = tenant.run("preview", "--engine", "embedded")
    assert "warehouse `executions` with its namespaces and tables" in preview.stdout + preview.stderr


@pytest.mark.long
def test_changed_deletion_counts_after_the_next_up(make_tenant: Callable[..., Any]) -> None:
    tenant = tenant_with_table(make_tenant, deletion="protect")
    tenant.spec["warehouses"][0]["deletion"] = "purge"
    tenant.write()

    assert tenant.run("destroy", "--yes", "--engine", "embedded").returncode != 0
    tenant.up()
    tenant.verb("destroy", "--yes")


@pytest.mark.long
@pytest.mark.stand_in("looks into the bucket that the stack makes")
def test_protect_without_tables_refuses_because_of_files(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """Any file in a bucket is data. `purge` removes the files below its warehouse."""
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    tenant.up()
    version = aws("s3").put_object(Bucket=tenant.bucket, Key="by-hand.csv", Body=b"n\n1\n")["VersionId"]

    completed = tenant.run("destroy", "--yes", "--engine", "embedded")

    message = completed.stdout + completed.stderr
    assert completed.returncode != 0
    assert f"bucket `{tenant.bucket}` at {tenant.sandbox.aws.endpoint} holds 1 object (by-hand.csv)" in message
    assert "by-hand.csv" in message
    assert "set `deletion` to `purge`" in message
    assert "Traceback" not in message
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    assert aws("s3").get_object(Bucket=tenant.bucket, Key="by-hand.csv")["Body"].read() == b"n\n1\n"
    tenant.spec["warehouses"][0]["deletion"] = "purge"
    tenant.write()
    tenant.up()
    assert "by-hand.csv" in tenant.run("destroy", "--yes", "--engine", "embedded").stderr, "no warehouse's, not purged"
    aws("s3").delete_object(Bucket=tenant.bucket, Key="by-hand.csv", VersionId=version)
    tenant.verb("destroy", "--yes")
    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


@pytest.mark.stand_in("looks into the bucket that the stack makes")
def test_protect_of_an_empty_tenant_destroys_everything(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], lakekeeper: Any
) -> None:
    """Old versions of the objects with which Lakekeeper validates a storage profile are not data."""
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    tenant.up()
    assert aws("s3").list_object_versions(Bucket=tenant.bucket)["Versions"]
    warehouse = tenant.catalog_config().warehouses[0].id
    strange = {"namespace": ["by-hand"]}
    lakekeeper.post(f"/catalog/v1/{warehouse}/namespaces", json=strange).raise_for_status()

    refused = tenant.run("destroy", "--yes", "--engine", "embedded")
    lakekeeper.delete(f"/catalog/v1/{warehouse}/namespaces/by-hand").raise_for_status()
    tenant.verb("destroy", "--yes")

    assert refused.returncode != 0
    assert "holds namespaces that the stack does not declare: by-hand" in refused.stdout + refused.stderr
    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]
    projects = lakekeeper.get("/management/v1/project-list").json()["projects"]
    assert tenant.name not in [project["project-id"] for project in projects]


@pytest.mark.long
def test_protected_objects_survive_a_purge(make_tenant: Callable[..., Any], lakekeeper: Any) -> None:
    """Preview and `destroy` refuse before anything is deleted, and so does an `up` without the table."""
    orders = {"name": "executions.results.orders", "columns": [{"name": "n", "type": "long"}], "protected": True}
    tenant = make_tenant(
        warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "purge"}], tables=[orders]
    )
    warehouse = tenant.up()["outputs"]["warehouse_ids"]["executions"]
    table = f"/catalog/v1/{warehouse}/namespaces/results/tables/orders"
    reason = "warehouse `executions` holds protected objects (remove their protection first): results.orders"

    for command in (["destroy", "--preview-only"], ["destroy", "--yes"]):
        message = tenant.error(*command, "--engine", "embedded")
        assert "ProtectedError: nothing was destroyed" in message
        assert reason in message

    del tenant.spec["tables"]
    tenant.write()
    for command in (["preview"], ["up", "--yes"]):
        assert "table `results.orders` of warehouse `executions` is protected" in tenant.error(
            *command, "--engine", "embedded"
        )
    assert lakekeeper.head(table).status_code == 204
    tenant.spec["tables"] = [orders | {"protected": False}]
    tenant.write()
    assert list_changes(tenant.up()) == {("update", "Table", f"{tenant.name}-executions.results.orders")}
    tenant.verb("destroy", "--yes")
