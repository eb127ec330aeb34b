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
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.stand_in("plays a bucket that the stack makes on AWS")


@pytest.fixture
def own(sandbox: Sandbox, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Props:
    """The bucket as one that the stack made."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    return {"bucket": bucket, "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}


@pytest.fixture
def outer(declared: Props, own: Props) -> Resource:
    """A warehouse with `deletion: purge` at `main/` of the stack's bucket."""
    resource = Resource(WarehouseProvider())
    resource.up(**declared, deletion="purge", own_bucket=own)
    return resource


PlaceInner = Callable[[str], None]


@pytest.fixture
def place_inner(declared: Props, http: httpx.Client, unique: str) -> PlaceInner:
    """Return a function that makes a warehouse `inner` of another project at a prefix of the bucket."""

    def place(prefix: str) -> None:
        other = f"{unique}-other"
        http.post("/management/v1/project", json={"project-id": other, "project-name": other}).raise_for_status()
        storage = declared["storage"] | {"key_prefix": prefix}
        inner = declared | {"project_id": other, "name": "inner", "storage": storage, "deletion": "retain"}
        Resource(WarehouseProvider()).up(**inner)

    return place


@pytest.mark.parametrize(
    ("prefix", "left"),
    [
        ("main/inner", ["main/inner/data.parquet", "main2/data.parquet"]),
        ("main", ["main/data.parquet", "main/inner/data.parquet", "main2/data.parquet"]),
    ],
)
def test_purge_spares_another_projects_warehouse(
    outer: Resource,
    place_inner: PlaceInner,
    aws: AwsClient,
    bucket: str,
    *,
    prefix: str,
    left: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    place_inner(prefix)
    for key in ("main/data.parquet", "main/inner/data.parquet", "main2/data.parquet"):
        aws("s3").put_object(Bucket=bucket, Key=key, Body=b"1")

    outer.destroy()

    found = aws("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
    assert [item["Key"] for item in found if item["Key"].endswith("data.parquet")] == left
    assert f"keeping objects under {prefix}/ in main/: warehouse `inner`" in capfd.readouterr().err


def record_of(declared: Props, own: Props) -> Props:
    purged = {"bucket": own["bucket"], "deletion": "purge", "key_prefix": "main"}
    return {
        "server": declared["server"],
        "tenant": declared["project_id"],
        "warehouses": {"main": purged},
        "buckets": {"main": own},
    }


def test_preview_refuses_to_purge_around_another_project(declared: Props, own: Props, place_inner: PlaceInner) -> None:
    place_inner("main/inner")
    with pytest.raises(
        RemovalRefusedError, match=r"warehouse `main` with `deletion: purge` .* overlaps with warehouse"
    ):
        Resource(TenantRecordProvider()).preview(**record_of(declared, own))


def test_prefix_without_neighbours_may_be_purged(declared: Props, own: Props, place_inner: PlaceInner) -> None:
    place_inner("main2")
    assert Resource(TenantRecordProvider()).preview(**record_of(declared, own)) == "create"


def test_guard_refuses_before_anything_is_emptied(
    outer: Resource, declared: Props, own: Props, place_inner: PlaceInner
) -> None:
    guard = Resource(DeletionGuardProvider())
    guarded = own | {"emptied": ["main"]}
    guard.up(server=declared["server"], warehouses={}, buckets=[guarded], declared={"main": outer.id})
    place_inner("main/inner")
    with pytest.raises(StillHeldError, match=r"nothing was destroyed: bucket .* has warehouse `inner`"):
        guard.destroy()


def test_refresh_forgets_retained_data_that_is_gone(
    outer: Resource, declared: Props, own: Props, aws: AwsClient, bucket: str
) -> None:
    """The record stays while the warehouse is on the server or a version of a file exists."""
    record = Resource(TenantRecordProvider())
    both = record_of(declared, own)
    both["warehouses"]["main"]["deletion"] = "retain"
    record.up(**both)
    without = both | {"warehouses": {}}
    record.up(**without)
    aws("s3").put_object(Bucket=bucket, Key="main/data.parquet", Body=b"1")

    record.refresh()
    assert [item["name"] for item in record.outs["kept"]] == ["main"], "the warehouse is there"
    http_delete(declared, outer)
    record.refresh()
    assert [item["name"] for item in record.outs["kept"]] == ["main"], "a file is there"
    remove_all(aws, bucket)
    record.refresh()
    assert record.outs["kept"] == []
    assert record.up(**without) == "same"


def http_delete(declared: Props, warehouse: Resource) -> None:
    url = f"{declared['server']['endpoint']}/management/v1/warehouse/{warehouse.id}"
    httpx.delete(url).raise_for_status()


def remove_all(aws: AwsClient, bucket: str) -> None:
    s3: Any = aws("s3")
    for version in s3.list_object_versions(Bucket=bucket, Prefix="main/").get("Versions", []):
        s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
