"""Two tenants in one sandbox: credentials of one tenant give no access to the other tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from lakewright_engine.model.resources import SecretValue
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.credentials import load

pytestmark = pytest.mark.timeout(300)

WAREHOUSES = [
    {"name": "one", "namespaces": ["results"], "deletion": "purge"},
    {"name": "two", "namespaces": ["results"], "deletion": "purge"},
]


@dataclass(frozen=True)
class TableLocation:
    """A bucket and a directory in it that holds an object."""

    bucket: str
    directory: str
    key: str


def create_table(tenant: Any, warehouse: str, table: str) -> TableLocation:
    """Create a table with a row, and return its location."""
    new_table = tenant.catalog(warehouse).create_table(f"results.{table}", schema=pa.schema([("n", pa.int64())]))
    new_table.append(pa.table({"n": [1]}))
    bucket, _, directory = new_table.location().removeprefix("s3://").partition("/")
    return TableLocation(bucket, directory, new_table.metadata_location.removeprefix(f"s3://{bucket}/"))


def vend_keys(tenant: Any, warehouse: str, table: str) -> dict[str, str]:
    """Return the keys in the response to a table load, as any client of the catalog gets them."""
    config = tenant.catalog_config().warehouse(warehouse)
    client = tenant.real.http() if tenant.real else httpx.Client(timeout=60)
    with client:
        response = client.get(
            f"{tenant.sandbox.lakekeeper.catalog_uri}/v1/{config.id}/namespaces/results/tables/{table}",
            headers={"X-Iceberg-Access-Delegation": "vended-credentials"},
        ).raise_for_status()
    vended_config = response.json()["config"]
    return {
        "aws_access_key_id": vended_config["s3.access-key-id"],
        "aws_secret_access_key": vended_config["s3.secret-access-key"],
        "aws_session_token": vended_config["s3.session-token"],
    }


def calls(
    s3: Any, caller_location: TableLocation, target_location: TableLocation
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every kind of call on objects and listings at a location. Copies start at the caller's location."""
    target = {"Bucket": target_location.bucket, "Key": target_location.key}
    new = {"Bucket": target_location.bucket, "Key": f"{target_location.directory}/data/stolen"}
    yield "GetObject", lambda: s3.get_object(**target)
    yield "HeadObject", lambda: s3.head_object(**target)
    yield "GetObjectTagging", lambda: s3.get_object_tagging(**target)
    yield "GetObjectAcl", lambda: s3.get_object_acl(**target)
    yield "PutObject", lambda: s3.put_object(**new, Body=b"x")
    yield "PutObjectTagging", lambda: s3.put_object_tagging(**target, Tagging={"TagSet": []})
    yield "PutObjectAcl", lambda: s3.put_object_acl(**target, ACL="public-read")
    yield (
        "CopyObject to",
        lambda: s3.copy_object(**new, CopySource={"Bucket": caller_location.bucket, "Key": caller_location.key}),
    )
    yield (
        "CopyObject from",
        lambda: s3.copy_object(
            Bucket=caller_location.bucket,
            Key=f"{caller_location.directory}/data/copy",
            CopySource={"Bucket": target_location.bucket, "Key": target_location.key},
        ),
    )
    yield "CreateMultipartUpload", lambda: s3.create_multipart_upload(**new)
    yield "UploadPart", lambda: s3.upload_part(**new, UploadId="1", PartNumber=1, Body=b"x")
    yield "AbortMultipartUpload", lambda: s3.abort_multipart_upload(**new, UploadId="1")
    yield "ListParts", lambda: s3.list_parts(**new, UploadId="1")
    yield (
        "ListObjectsV2",
        lambda: s3.list_objects_v2(Bucket=target_location.bucket, Prefix=f"{target_location.directory}/"),
    )
    yield "ListObjects", lambda: s3.list_objects(Bucket=target_location.bucket, Prefix=f"{target_location.directory}/")
    yield "ListObjectsV2 of all", lambda: s3.list_objects_v2(Bucket=target_location.bucket)
    yield (
        "ListObjectVersions",
        lambda: s3.list_object_versions(Bucket=target_location.bucket, Prefix=f"{target_location.directory}/"),
    )
    yield "ListMultipartUploads", lambda: s3.list_multipart_uploads(Bucket=target_location.bucket)
    yield "DeleteObject", lambda: s3.delete_object(**target)
    yield "DeleteObjects", lambda: delete_objects(s3, target_location)


def delete_objects(s3: Any, target_location: TableLocation) -> None:
    """Delete an object. DeleteObjects responds with 200, and an error for each object that may not be deleted."""
    response = s3.delete_objects(Bucket=target_location.bucket, Delete={"Objects": [{"Key": target_location.key}]})
    for error in response.get("Errors", []):
        raise ClientError({"Error": error}, "DeleteObjects")


def list_allowed_calls(s3: Any, caller_location: TableLocation, target_location: TableLocation) -> list[str]:
    """Return the calls that were not denied. Any other error counts as allowed: it comes after the access check."""
    passed: list[str] = []
    for name, call in calls(s3, caller_location, target_location):
        try:
            call()
        except ClientError as error:
            if error.response["Error"]["Code"] in {"AccessDenied", "403"}:
                continue
        passed.append(name)
    return passed


def test_vended_keys_give_access_to_their_table_only(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    a, b = make_tenant(warehouses=WAREHOUSES), make_tenant(warehouses=WAREHOUSES)
    a.up()
    b.up()
    own_location = create_table(a, "one", "mine")
    forbidden = {
        "the other tenant's table": create_table(b, "one", "theirs"),
        "another table of the same warehouse": create_table(a, "one", "other"),
        "another warehouse on the same bucket": create_table(a, "two", "elsewhere"),
    }
    s3 = aws("s3", vend_keys(a, "one", "mine"))

    for description, location in forbidden.items():
        assert list_allowed_calls(s3, own_location, location) == [], description

    assert s3.get_object(Bucket=own_location.bucket, Key=own_location.key)["ContentLength"] > 0
    s3.put_object(Bucket=own_location.bucket, Key=f"{own_location.directory}/data/new", Body=b"x")
    assert s3.list_objects_v2(Bucket=own_location.bucket, Prefix=f"{own_location.directory}/")["KeyCount"] >= 2
    s3.delete_object(Bucket=own_location.bucket, Key=f"{own_location.directory}/data/new")
    assert s3.get_bucket_location(Bucket=own_location.bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
    location = forbidden["the other tenant's table"]
    all_calls = [name for name, _ in calls(s3, own_location, location)]
    assert list_allowed_calls(aws("s3"), own_location, location) == all_calls, (
        "the calls were denied because of the caller, not because they are invalid"
    )


def read_external_id(tenant: Any, warehouse: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the external id from the stack's state, decrypted with its passphrase."""
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "correct horse battery staple")
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    project = PulumiProject.load(tenant.folder)
    snapshot = project.backend().load(project.name, tenant.name)
    assert snapshot is not None
    (external_id_resource,) = [
        resource
        for resource in snapshot.resources
        if resource.urn.endswith(f"lakekeeper:ExternalId::{tenant.name}-{warehouse}")
    ]
    assert isinstance(external_id_resource.outputs["value"], SecretValue)
    return str(external_id_resource.outputs["value"].value)


@pytest.mark.long
@pytest.mark.stand_in("makes roles in IAM")
def test_role_gives_access_to_its_prefix_with_external_id(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role cannot be assumed without the external id, and reaches its own prefix only."""
    a, b = make_tenant(warehouses=WAREHOUSES), make_tenant(warehouses=WAREHOUSES)
    role = a.up()["outputs"]["role_arns"]["one"]
    b.up()
    own_location, other_tenant_location, sibling_location = (
        create_table(a, "one", "mine"),
        create_table(b, "one", "theirs"),
        create_table(a, "two", "elsewhere"),
    )
    secret = read_external_id(a, "one", monkeypatch)
    other_external_id = read_external_id(b, "one", monkeypatch)
    catalog = aws("sts", load(a.sandbox.credentials_file)["lakekeeper"])
    session = {"RoleArn": role, "RoleSessionName": "test"}

    for attempt in ({}, {"ExternalId": other_external_id}, {"ExternalId": "guess"}):
        with pytest.raises(ClientError, match="AccessDenied"):
            catalog.assume_role(**session, **attempt)
    with pytest.raises(ClientError, match="AccessDenied"):
        aws("sts").assume_role(
            **session, ExternalId=secret
        )  # The external id alone is not enough: only the catalog may assume the role.

    keys = catalog.assume_role(**session, ExternalId=secret)["Credentials"]
    s3 = aws(
        "s3",
        {
            "aws_access_key_id": keys["AccessKeyId"],
            "aws_secret_access_key": keys["SecretAccessKey"],
            "aws_session_token": keys["SessionToken"],
        },
    )
    assert list_allowed_calls(s3, own_location, other_tenant_location) == []
    assert list_allowed_calls(s3, own_location, sibling_location) == []
    assert s3.get_object(Bucket=own_location.bucket, Key=own_location.key)["ContentLength"] > 0
