"""A purge does not delete the tables that a migration in place has given to another catalog."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.provider.errors import RemovalRefusedError, StillHeldError
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright_spark.handed_over import HandedOverTable, build_address

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.stand_in("plays a bucket that the stack makes on AWS")

TABLE_ID = "019d0000-0000-7000-8000-000000000000"
DATA = f"main/{TABLE_ID}/data/part-0.parquet"


@pytest.fixture
def warehouse(warehouse_props: Props, own_bucket: Props) -> Resource:
    """A purged warehouse at `main/`."""
    resource = Resource(WarehouseProvider())
    resource.up(**warehouse_props, deletion="purge", own_bucket=own_bucket)
    return resource


def record_owner(aws: AwsClient, bucket: str, warehouse_id: str | None, content: bytes | None = None) -> str:
    """Write a file of a table and the object that names the table's owner, and return the object's key."""
    owner = HandedOverTable("sales.orders", "results", "https://new.example/catalog", warehouse_id, "run-1")
    key = build_address(f"main/{TABLE_ID}", TABLE_ID)
    aws("s3").put_object(Bucket=bucket, Key=DATA, Body=b"1")
    aws("s3").put_object(Bucket=bucket, Key=key, Body=owner.to_document() if content is None else content)
    return key


def list_keys(aws: AwsClient, bucket: str) -> list[str]:
    return [entry["Key"] for entry in aws("s3").list_objects_v2(Bucket=bucket, Prefix="main/").get("Contents", [])]


@pytest.mark.parametrize("owner", ["other", None], ids=["lakekeeper", "other catalog"])
def test_purge_spares_tables_of_another_catalog(
    warehouse: Resource, aws: AwsClient, bucket: str, http: httpx.Client, owner: str | None
) -> None:
    key = record_owner(aws, bucket, owner)

    with pytest.raises(RemovalRefusedError, match=r"`sales.orders` of warehouse `results` at https://new.example"):
        warehouse.destroy()

    http.get(f"/management/v1/warehouse/{warehouse.id}").raise_for_status()
    assert DATA in list_keys(aws, bucket)
    aws("s3").delete_object(Bucket=bucket, Key=key)
    warehouse.destroy()
    assert list_keys(aws, bucket) == []


def test_unreadable_owner_is_foreign(warehouse: Resource, aws: AwsClient, bucket: str) -> None:
    record_owner(aws, bucket, None, b"{}")
    with pytest.raises(RemovalRefusedError, match="a table with an unreadable record"):
        warehouse.destroy()


def test_owner_purges_its_own_tables(warehouse: Resource, aws: AwsClient, bucket: str) -> None:
    record_owner(aws, bucket, warehouse.id)
    warehouse.destroy()
    assert list_keys(aws, bucket) == []


def test_preview_and_guard_refuse_first(
    warehouse: Resource, warehouse_props: Props, own_bucket: Props, aws: AwsClient, bucket: str
) -> None:
    record, guard, name = Resource(TenantRecordProvider()), Resource(DeletionGuardProvider()), warehouse_props["name"]
    tenant = {
        "server": warehouse_props["server"],
        "tenant": warehouse_props["project_id"],
        "warehouses": {name: {"bucket": bucket, "deletion": "purge", "key_prefix": "main"}},
        "buckets": {"main": own_bucket},
    }
    record.up(**tenant)
    guard.up(
        server=warehouse_props["server"],
        warehouses={},
        declared={name: warehouse.id},
        buckets=[own_bucket | {"emptied": ["main"]}],
    )
    key = record_owner(aws, bucket, "other")

    with pytest.raises(RemovalRefusedError, match=r"nothing was changed: .* handed over to another catalog"):
        record.preview(**tenant | {"warehouses": {}})
    with pytest.raises(StillHeldError, match=r"nothing was destroyed: .* handed over to another catalog"):
        guard.destroy()

    aws("s3").delete_object(Bucket=bucket, Key=key)
    guard.destroy()
