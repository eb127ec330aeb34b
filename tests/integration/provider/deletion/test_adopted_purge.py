"""The key prefix of an adopted warehouse may hold other users' objects, which a purge must not delete."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.provider.errors import NotOwnedError, RemovalRefusedError, StillHeldError
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.ownership.mark import STACK_TAG
from lakewright.ownership.running_stack import run_as_stack

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.stand_in("plays a bucket that the stack makes on AWS")

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "type": "int", "required": False}]}


@pytest.fixture
def warehouse(warehouse_props: Props, own_bucket: Props, http: httpx.Client) -> Resource:
    """A purged warehouse at `main/` with a table, and a table at a location of its own."""
    resource = Resource(WarehouseProvider())
    resource.up(**warehouse_props, deletion="purge", own_bucket=own_bucket)
    root = f"/catalog/v1/{resource.id}/namespaces"
    http.post(root, json={"namespace": ["sales"]}).raise_for_status()
    for table in ({"name": "orders"}, {"name": "books", "location": f"s3://{own_bucket['bucket']}/main/library"}):
        http.post(f"{root}/sales/tables", json={**table, "schema": SCHEMA}).raise_for_status()
    return resource


def test_purge_of_adopted_warehouse_spares_others_data(
    warehouse: Resource, warehouse_props: Props, own_bucket: Props, aws: AwsClient, bucket: str
) -> None:
    record, guard = Resource(TenantRecordProvider()), Resource(DeletionGuardProvider())
    purged_warehouse = {"bucket": bucket, "deletion": "purge", "key_prefix": "main"}
    tenant = {
        "server": warehouse_props["server"],
        "tenant": warehouse_props["project_id"],
        "warehouses": {warehouse_props["name"]: purged_warehouse},
        "buckets": {"main": own_bucket},
    }
    record.up(**tenant, adopting=[warehouse_props["name"]])
    record.up(**tenant)
    assert record.outs["warehouses"][warehouse_props["name"]]["is_adopted"], "it remains adopted without `adopt`"
    prefixes = {warehouse_props["name"]: "main"}
    guard_props = {
        "server": warehouse_props["server"],
        "warehouses": {},
        "declared": {warehouse_props["name"]: warehouse.id},
    }
    guard.up(**guard_props, buckets=[own_bucket | {"emptied": ["main"]}], adopted=prefixes)
    operation_before_file = record.preview(**tenant | {"warehouses": {}})
    aws("s3").put_object(Bucket=bucket, Key="main/reports/2026.csv", Body=b"1")

    with pytest.raises(RemovalRefusedError, match=r"explains: main/reports/2026.csv\."):
        record.preview(**tenant | {"warehouses": {}})
    with pytest.raises(StillHeldError, match=r"nothing was destroyed: .* explains: main/reports/2026.csv\."):
        guard.destroy()

    assert operation_before_file == "update"
    aws("s3").delete_object(Bucket=bucket, Key="main/reports/2026.csv")
    guard.destroy()


def test_warehouse_alone_spares_others_data(
    warehouse: Resource, warehouse_props: Props, own_bucket: Props, aws: AwsClient, http: httpx.Client
) -> None:
    """A run with targets, or a run that continues an interrupted `destroy`, has no guard."""
    purge_props, bucket = warehouse_props | {"deletion": "purge", "own_bucket": own_bucket}, own_bucket["bucket"]
    assert warehouse.up(**purge_props, is_adopted=True) == "update"
    aws("s3").put_object(Bucket=bucket, Key="main/reports/2026.csv", Body=b"1")

    with pytest.raises(RemovalRefusedError, match=r"nothing was deleted of .* explains: main/reports/2026.csv\."):
        warehouse.destroy()
    http.get(f"/catalog/v1/{warehouse.id}/namespaces/sales/tables/orders").raise_for_status()

    Resource(WarehouseProvider(), warehouse.id, {}, warehouse.outs | {"is_adopted": None}).destroy()
    aws("s3").put_object(Bucket=bucket, Key="main/later.csv", Body=b"1")
    with pytest.raises(RemovalRefusedError, match=r"explains: main/later.csv\."):
        warehouse.destroy()  # a kill came between the deletion and the emptying
    aws("s3").delete_object(Bucket=bucket, Key="main/later.csv")
    warehouse.destroy()


def test_purge_spares_a_bucket_that_another_stack_owns(
    warehouse: Resource, aws: AwsClient, bucket: str, http: httpx.Client
) -> None:
    """Another stack has adopted the bucket, and not the project."""
    tags = [{"Key": STACK_TAG, "Value": "lakewright/other"}]
    aws("s3").put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})

    with pytest.raises(NotOwnedError, match=rf"bucket `{bucket}` .* belongs to stack `lakewright/other`"):
        run_as_stack("lakewright", "acme", warehouse.destroy)

    http.get(f"/catalog/v1/{warehouse.id}/namespaces/sales/tables/orders").raise_for_status()
