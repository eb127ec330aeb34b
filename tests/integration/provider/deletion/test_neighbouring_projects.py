"""A prefix to be purged that contains another project's warehouse: refused early, and spared by a purge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.provider.errors import RemovalRefusedError, StillHeldError
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.stand_in("plays a bucket that the stack makes on AWS")


@pytest.fixture
def outer(warehouse_props: Props, own_bucket: Props) -> Resource:
    """A warehouse with `deletion: purge` at `main/` of the stack's bucket."""
    resource = Resource(WarehouseProvider())
    resource.up(**warehouse_props, deletion="purge", own_bucket=own_bucket)
    return resource


CreateInner = Callable[[str], None]


@pytest.fixture
def create_inner(warehouse_props: Props, http: httpx.Client, unique: str) -> CreateInner:
    """Return a function that creates a warehouse `inner` of another project at a prefix of the bucket."""

    def create(prefix: str) -> None:
        other = f"{unique}-other"
        http.post("/management/v1/project", json={"project-id": other, "project-name": other}).raise_for_status()
        storage = warehouse_props["storage"] | {"key_prefix": prefix}
        inner = warehouse_props | {"project_id": other, "name": "inner", "storage": storage, "deletion": "retain"}
        Resource(WarehouseProvider()).up(**inner)

    return create


@pytest.mark.parametrize(
    ("prefix", "expected_keys"),
    [
        ("main/inner", ["main/inner/data.parquet", "main2/data.parquet"]),
        ("main", ["main/data.parquet", "main/inner/data.parquet", "main2/data.parquet"]),
    ],
)
def test_purge_spares_another_projects_warehouse(
    outer: Resource,
    create_inner: CreateInner,
    aws: AwsClient,
    bucket: str,
    *,
    prefix: str,
    expected_keys: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    create_inner(prefix)
    for key in ("main/data.parquet", "main/inner/data.parquet", "main2/data.parquet"):
        aws("s3").put_object(Bucket=bucket, Key=key, Body=b"1")

    outer.destroy()

    contents = aws("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
    assert [item["Key"] for item in contents if item["Key"].endswith("data.parquet")] == expected_keys
    assert f"keeping objects under {prefix}/ in main/: warehouse `inner`" in capfd.readouterr().err


def build_record(warehouse_props: Props, own_bucket: Props) -> Props:
    purged_warehouse = {"bucket": own_bucket["bucket"], "deletion": "purge", "key_prefix": "main"}
    return {
        "server": warehouse_props["server"],
        "tenant": warehouse_props["project_id"],
        "warehouses": {"main": purged_warehouse},
        "buckets": {"main": own_bucket},
    }


def test_preview_refuses_to_purge_around_another_project(
    warehouse_props: Props, own_bucket: Props, create_inner: CreateInner
) -> None:
    create_inner("main/inner")
    with pytest.raises(
        RemovalRefusedError, match=r"warehouse `main` with `deletion: purge` .* overlaps with warehouse"
    ):
        Resource(TenantRecordProvider()).preview(**build_record(warehouse_props, own_bucket))


def test_prefix_without_neighbours_may_be_purged(
    warehouse_props: Props, own_bucket: Props, create_inner: CreateInner
) -> None:
    create_inner("main2")
    assert Resource(TenantRecordProvider()).preview(**build_record(warehouse_props, own_bucket)) == "create"


def test_guard_refuses_before_anything_is_emptied(
    outer: Resource, warehouse_props: Props, own_bucket: Props, create_inner: CreateInner
) -> None:
    guard = Resource(DeletionGuardProvider())
    purged_bucket = own_bucket | {"emptied": ["main"]}
    guard.up(server=warehouse_props["server"], warehouses={}, buckets=[purged_bucket], declared={"main": outer.id})
    create_inner("main/inner")
    with pytest.raises(StillHeldError, match=r"nothing was destroyed: bucket .* has warehouse `inner`"):
        guard.destroy()


def test_refresh_forgets_retained_data_after_its_deletion(
    outer: Resource, warehouse_props: Props, own_bucket: Props, aws: AwsClient, bucket: str
) -> None:
    """The record is kept while the warehouse is on the server or a version of a file exists."""
    record = Resource(TenantRecordProvider())
    record_props = build_record(warehouse_props, own_bucket)
    record_props["warehouses"]["main"]["deletion"] = "retain"
    record.up(**record_props)
    record_without_warehouses = record_props | {"warehouses": {}}
    record.up(**record_without_warehouses)
    aws("s3").put_object(Bucket=bucket, Key="main/data.parquet", Body=b"1")

    record.refresh()
    assert [item["name"] for item in record.outs["kept"]] == ["main"], "the warehouse exists"
    http_delete(warehouse_props, outer)
    record.refresh()
    assert [item["name"] for item in record.outs["kept"]] == ["main"], "a file exists"
    remove_all(aws, bucket)
    record.refresh()
    assert record.outs["kept"] == []
    assert record.up(**record_without_warehouses) == "same"


@pytest.mark.since("0.14")
def test_refresh_forgets_retained_data_outside_the_stack(
    outer: Resource, warehouse_props: Props, own_bucket: Props
) -> None:
    """Files in a bucket that the stack does not have are not looked at: no stack deletes them."""
    record = Resource(TenantRecordProvider())
    record_props = build_record(warehouse_props, own_bucket) | {"buckets": {}}
    record_props["warehouses"]["main"]["deletion"] = "retain"
    record.up(**record_props)
    record.up(**record_props | {"warehouses": {}})

    record.refresh()
    assert [item["name"] for item in record.outs["kept"]] == ["main"], "the warehouse exists"
    http_delete(warehouse_props, outer)
    record.refresh()
    assert record.outs["kept"] == []


def http_delete(warehouse_props: Props, warehouse: Resource) -> None:
    url = f"{warehouse_props['server']['endpoint']}/management/v1/warehouse/{warehouse.id}"
    httpx.delete(url).raise_for_status()


def remove_all(aws: AwsClient, bucket: str) -> None:
    s3: Any = aws("s3")
    for version in s3.list_object_versions(Bucket=bucket, Prefix="main/").get("Versions", []):
        s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
