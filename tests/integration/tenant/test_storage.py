"""Storage that the stack does not create: the tenant's bucket and role, and an S3-compatible store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lakewright.aws.access import trust_policy

from tests.integration.tenant.conftest import make_bucket_and_role

pytestmark = pytest.mark.timeout(300)

ROWS = pa.table({"n": [1, 2, 3]})


def write_and_read(tenant: Any) -> list[int]:
    table = tenant.catalog("executions").create_table("results.flights", schema=ROWS.schema)
    table.append(ROWS)
    return table.scan().to_arrow()["n"].to_pylist()


def test_tenant_brings_its_bucket_and_role(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    tenant = make_tenant()
    bucket = make_bucket_and_role(tenant, aws, "acme-0815")

    steps = tenant.up()["steps"]

    assert not [step for step in steps if step["type"].startswith("aws:")], "no AWS resource is created"
    assert write_and_read(tenant) == [1, 2, 3]
    tenant.verb("destroy", "--yes")
    assert bucket in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


def test_external_id_from_the_stack_configuration(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    tenant = make_tenant()
    make_bucket_and_role(tenant, aws, "acme-from-config")
    tenant.spec["storage"]["main"]["external_id"] = "config:own_external_id"
    tenant.write()
    tenant.output("config", "set", "own_external_id", "acme-from-config", "--secret")

    tenant.up()

    assert write_and_read(tenant) == [1, 2, 3]


def test_external_id_is_generated_for_the_role(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    tenant = make_tenant()
    role = make_bucket_and_role(tenant, aws, "nobody-knows-yet")
    del tenant.spec["storage"]["main"]["external_id"]
    tenant.write()
    tenant.environ = {"LAKEWRIGHT_ROLE_PROPAGATION": "0"}

    failed = tenant.run("up", "--yes", "--engine", "embedded")
    external_id = json.loads(tenant.output("external-ids", "--json"))[f"{tenant.name}-executions"]
    trust = json.dumps(trust_policy(tenant.sandbox.aws.catalog_principal_arn, external_id))
    aws("iam").update_assume_role_policy(RoleName=role, PolicyDocument=trust)
    tenant.up()

    assert failed.returncode == 1
    assert external_id not in failed.stdout + failed.stderr
    assert write_and_read(tenant) == [1, 2, 3]


def test_store_with_keys_by_reference_signs_each_request(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], lakekeeper: Any
) -> None:
    tenant = make_tenant(
        warehouses=[
            {"name": "executions", "namespaces": ["results"], "delegation": "remote-signing", "deletion": "purge"}
        ]
    )
    admin = tenant.sandbox.admin
    aws("s3").create_bucket(Bucket=f"{tenant.name}-store")
    tenant.spec["storage"] = {
        "main": {
            "backend": "s3",
            "bucket": f"{tenant.name}-store",
            "endpoint": tenant.sandbox.aws.endpoint,
            "credential": {"access_key_id": "env:STORE_ID", "secret_access_key": "env:STORE_SECRET"},
            "region": tenant.sandbox.aws.region,
            "sts": False,
        }
    }
    tenant.environ = {
        "STORE_ID": admin.access_key_id,
        "STORE_SECRET": admin.secret_access_key.get_secret_value(),
    }
    tenant.write()

    warehouse = tenant.up()["outputs"]["warehouse_ids"]["executions"]

    profile = lakekeeper.get(f"/management/v1/warehouse/{warehouse}").json()["storage-profile"]
    assert (profile["flavor"], profile["sts-enabled"], profile["remote-signing-enabled"]) == ("s3-compat", False, True)
    assert write_and_read(tenant) == [1, 2, 3]
    tenant.environ = {}
    tenant.verb("preview", "--refresh", "--expect-no-changes")


def test_tenant_data_is_encrypted_with_its_own_key(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    """Role and vended credentials have rights on the key: the sandbox checks them as S3 does."""
    tenant = make_tenant()
    tenant.spec["storage"] = {"main": {"backend": "aws", "bucket": tenant.bucket, "encryption": {"kms": "own"}}}
    tenant.write()

    key_names = [step["name"] for step in tenant.up()["steps"] if step["type"] == "aws:kms/key:Key"]

    assert len(key_names) == 1
    assert write_and_read(tenant) == [1, 2, 3]
    files = aws("s3").list_objects_v2(Bucket=tenant.bucket)["Contents"]
    data = next(file["Key"] for file in files if file["Key"].endswith(".parquet"))
    assert aws("s3").head_object(Bucket=tenant.bucket, Key=data)["ServerSideEncryption"] == "aws:kms"
    assert set(tenant.up("--refresh")["changes"]) == {"same"}


def test_roles_have_the_permissions_boundary(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    iam = aws("iam")
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    tenant = make_tenant()
    boundary = iam.create_policy(PolicyName=f"{tenant.name}-limit", PolicyDocument=document)["Policy"]["Arn"]
    file = tenant.folder / "environments" / "sandbox.yaml"
    file.write_text(file.read_text() + f"aws: {{permissions_boundary: '{boundary}'}}\n")

    tenant.up()

    role = iam.get_role(RoleName=f"lakewright.{tenant.name}.executions")["Role"]
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary
    assert write_and_read(tenant) == [1, 2, 3]
    tenant.verb("preview", "--refresh", "--expect-no-changes")
