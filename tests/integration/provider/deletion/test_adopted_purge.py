"""The key prefix of an adopted warehouse may hold objects of others, which a purge must not delete."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.provider.errors import RemovalRefusedError, StillHeldError
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright_sandbox.runtime.state import Sandbox

from ..conftest import AwsClient
from ..resource import Props, Resource

pytestmark = pytest.mark.stand_in("plays a bucket that the stack makes on AWS")

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "type": "int", "required": False}]}


@pytest.fixture
def own(sandbox: Sandbox, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Props:
    """The bucket as one that the stack made."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    return {"bucket": bucket, "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}


@pytest.fixture
def warehouse(declared: Props, own: Props, http: httpx.Client) -> Resource:
    """A purged warehouse at `main/` with a table, and a table at a location of its own."""
    resource = Resource(WarehouseProvider())
    resource.up(**declared, deletion="purge", own_bucket=own)
    root = f"/catalog/v1/{resource.id}/namespaces"
    http.post(root, json={"namespace": ["sales"]}).raise_for_status()
    for table in ({"name": "orders"}, {"name": "books", "location": f"s3://{own['bucket']}/main/library"}):
        http.post(f"{root}/sales/tables", json={**table, "schema": SCHEMA}).raise_for_status()
    return resource


def test_purge_of_adopted_warehouse_spares_others_data(
    warehouse: Resource, declared: Props, own: Props, aws: AwsClient, bucket: str
) -> None:
    record, guard = Resource(TenantRecordProvider()), Resource(DeletionGuardProvider())
    purged = {"bucket": bucket, "deletion": "purge", "key_prefix": "main"}
    tenant = {
        "server": declared["server"],
        "tenant": declared["project_id"],
        "warehouses": {declared["name"]: purged},
        "buckets": {"main": own},
    }
    record.up(**tenant, adopting=[declared["name"]])
    record.up(**tenant)
    assert record.outs["warehouses"][declared["name"]]["is_adopted"], "it stays adopted without `adopt`"
    prefixes = {declared["name"]: "main"}
    guarded = {"server": declared["server"], "warehouses": {}, "declared": {declared["name"]: warehouse.id}}
    guard.up(**guarded, buckets=[own | {"emptied": ["main"]}], adopted=prefixes)
    explained = record.preview(**tenant | {"warehouses": {}})
    aws("s3").put_object(Bucket=bucket, Key="main/reports/2026.csv", Body=b"1")

    with pytest.raises(RemovalRefusedError, match=r"explains: main/reports/2026.csv\."):
        record.preview(**tenant | {"warehouses": {}})
    with pytest.raises(StillHeldError, match=r"nothing was destroyed: .* explains: main/reports/2026.csv\."):
        guard.destroy()

    assert explained == "update"
    aws("s3").delete_object(Bucket=bucket, Key="main/reports/2026.csv")
    guard.destroy()
