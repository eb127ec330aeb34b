"""Two tenants on one bucket of a real store: neither reaches the other's objects, by vended keys or signed requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from lakewright_sandbox.runtime.state import StoreState

from tests.s3.conftest import MakeStoreTenant, StoreTenant

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@dataclass
class TableOfTenant:
    """A table of a tenant, and where its objects are."""

    tenant: StoreTenant
    config: dict[str, str]
    """What the catalog gives to a client that loads the table."""
    location: str
    metadata: str

    @property
    def key(self) -> str:
        """Key of its metadata in the bucket."""
        return self.metadata.split("/", 3)[3]

    @property
    def keys(self) -> dict[str, str]:
        """The vended credential, in boto3's words."""
        return {
            "aws_access_key_id": self.config["s3.access-key-id"],
            "aws_secret_access_key": self.config["s3.secret-access-key"],
            "aws_session_token": self.config["s3.session-token"],
        }


def load(tenant: StoreTenant, access: str) -> TableOfTenant:
    """Make a table, and load it as a client that asks for a kind of delegation."""
    catalog = tenant.catalog("executions")
    catalog.create_table("results.numbers", ROWS.schema).append(ROWS)
    warehouse = tenant.catalog_config().warehouse("executions")
    url = f"{tenant.sandbox.lakekeeper.catalog_uri}/v1/{warehouse.id}/namespaces/results/tables/numbers"
    loaded = httpx.get(url, headers={"X-Iceberg-Access-Delegation": access}).raise_for_status().json()
    return TableOfTenant(tenant, loaded.get("config", {}), loaded["metadata"]["location"], loaded["metadata-location"])


@pytest.fixture
def shared_bucket(s3: Callable[..., Any], request: pytest.FixtureRequest) -> str:
    """A bucket that several tenants share."""
    from uuid import uuid4

    name = f"shared-{uuid4().hex[:8]}"
    s3().create_bucket(Bucket=name)
    return name


def is_denied(call: Callable[[], Any]) -> bool:
    with pytest.raises(ClientError) as refused:
        call()
    return refused.value.response["Error"]["Code"] in {"AccessDenied", "403", "Forbidden"}


def test_vended_credentials_reach_their_table_alone(
    make_tenant: MakeStoreTenant, shared_bucket: str, s3: Callable[..., Any]
) -> None:
    tenants = [make_tenant({"create": False, "bucket": shared_bucket}) for _ in range(2)]
    for tenant in tenants:
        tenant.up()
    own_table, other_table = (load(tenant, "vended-credentials") for tenant in tenants)
    client, bucket = s3(**own_table.keys), shared_bucket

    assert client.get_object(Bucket=bucket, Key=own_table.key)["Body"].read()
    assert is_denied(lambda: client.get_object(Bucket=bucket, Key=other_table.key))
    assert is_denied(lambda: client.put_object(Bucket=bucket, Key=other_table.key, Body=b""))
    assert is_denied(lambda: client.delete_object(Bucket=bucket, Key=other_table.key))
    assert is_denied(
        lambda: client.put_object(Bucket=bucket, Key=f"{own_table.tenant.name}/executions/canary", Body=b"")
    )
    assert is_denied(lambda: client.list_objects_v2(Bucket=bucket))
    assert is_denied(lambda: client.list_objects_v2(Bucket=bucket, Prefix=f"{other_table.tenant.name}/"))
    assert is_denied(lambda: client.put_bucket_policy(Bucket=bucket, Policy="{}"))
    assert is_denied(lambda: client.delete_bucket(Bucket=bucket))


def test_signer_signs_requests_of_its_table_alone(
    make_tenant: MakeStoreTenant, shared_bucket: str, store: StoreState
) -> None:
    warehouses = [
        {"name": "executions", "namespaces": ["results"], "deletion": "purge", "delegation": "remote-signing"}
    ]
    tenants = [
        make_tenant({"create": False, "bucket": shared_bucket, "sts": False}, warehouses=warehouses) for _ in range(2)
    ]
    for tenant in tenants:
        tenant.up()
    own_table, other_table = (load(tenant, "remote-signing") for tenant in tenants)

    assert "s3.secret-access-key" not in own_table.config
    signer = f"{own_table.config['s3.signer.uri'].rstrip('/')}/{own_table.config['s3.signer.endpoint'].lstrip('/')}"

    def sign(key: str, method: str = "GET") -> httpx.Response:
        uri = f"{store.endpoint}/{shared_bucket}/{key}"
        body = {"region": store.region, "uri": uri, "method": method, "headers": {"host": [uri.split("/")[2]]}}
        return httpx.post(signer, json=body)

    signed = sign(own_table.key).raise_for_status().json()
    headers = {name: values[0] for name, values in signed["headers"].items()}
    assert httpx.get(signed["uri"], headers=headers).status_code == 200
    for key, method in (
        (other_table.key, "GET"),
        (other_table.key, "DELETE"),
        ("canary", "PUT"),
        (f"{own_table.key}/../../../x", "PUT"),
    ):
        assert sign(key, method).status_code >= 400
    assert other_table.tenant.catalog("executions").load_table("results.numbers").scan().to_arrow().num_rows == 3
