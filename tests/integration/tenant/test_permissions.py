"""The permission matrix of the documentation, confirmed by calls with the roles that a tenant gets."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from botocore.exceptions import ClientError
from lakewright_sandbox.runtime.credentials import LAKEKEEPER, load

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("makes buckets, keys and roles on AWS")]

ACCOUNT, FOREIGN = "123456789012", "210987654321"
SCRIPT = Path(__file__).parents[3] / "scripts" / "permissions.py"
Call = Callable[[], Any]


@pytest.fixture(scope="module")
def permissions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("permissions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["permissions"] = module
    spec.loader.exec_module(module)
    return module


def create_user(iam: Any, name: str, *, path: str = "/") -> tuple[str, dict[str, str]]:
    """Create a user with all rights; return its name and keys."""
    iam.create_user(UserName=name, Path=path)
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="everything", PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return name, {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}


def is_allowed(call: Call) -> bool:
    """Return whether a call is allowed. Other errors than a denial come after the access check."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"] not in {"AccessDenied", "AccessDeniedException", "403"}
    return True


def assume_role(sts: Any, role: str, external_id: str | None = None, **more: Any) -> dict[str, str]:
    """Return the keys of a session of a role."""
    external_id_args = {"ExternalId": external_id} if external_id else {}
    credentials = sts.assume_role(RoleArn=role, RoleSessionName="test", **external_id_args, **more)["Credentials"]
    return {
        "aws_access_key_id": credentials["AccessKeyId"],
        "aws_secret_access_key": credentials["SecretAccessKey"],
        "aws_session_token": credentials["SessionToken"],
    }


def calls(clients: Mapping[str, Any], bucket: str, prefix: str, key: str, role: str) -> dict[str, Call]:
    """Return a call for each row of the table of rights."""
    s3, kms, sts, iam = (clients[name] for name in ("s3", "kms", "sts", "iam"))
    own_object, sibling_object = (
        {"Bucket": bucket, "Key": f"{prefix}/seen"},
        {"Bucket": bucket, "Key": f"{prefix}2/seen"},
    )
    new, upload = {"Bucket": bucket, "Key": f"{prefix}/new"}, {"UploadId": "none"}
    old = {"VersionId": "none"}
    tagging: Any = {"Tagging": {"TagSet": []}}
    lifecycle: Any = {"Rules": []}
    in_prefix, in_similar_prefix = "under the prefix", "under a prefix that begins alike"
    return {
        f"`s3:GetObject` {in_prefix}": lambda: s3.head_object(**own_object),
        f"`s3:GetObjectVersion` {in_prefix}": lambda: s3.head_object(**own_object, **old),
        f"`s3:PutObject` {in_prefix}": lambda: s3.create_multipart_upload(**new, ServerSideEncryption="AES256"),
        f"`s3:DeleteObject` {in_prefix}": lambda: s3.delete_object(**new),
        f"`s3:DeleteObjectVersion` {in_prefix}": lambda: s3.delete_object(**new, **old),
        f"`s3:AbortMultipartUpload` {in_prefix}": lambda: s3.abort_multipart_upload(**new, **upload),
        f"`s3:ListMultipartUploadParts` {in_prefix}": lambda: s3.list_parts(**new, **upload),
        f"`s3:GetObjectAcl` {in_prefix}": lambda: s3.get_object_acl(**own_object),
        f"`s3:PutObjectAcl` {in_prefix}": lambda: s3.put_object_acl(**own_object, ACL="private"),
        f"`s3:GetObjectTagging` {in_prefix}": lambda: s3.get_object_tagging(**own_object),
        f"`s3:PutObjectTagging` {in_prefix}": lambda: s3.put_object_tagging(**own_object, **tagging),
        f"`s3:GetObject` {in_similar_prefix}": lambda: s3.head_object(**sibling_object),
        f"`s3:PutObject` {in_similar_prefix}": lambda: s3.put_object(**sibling_object),
        f"`s3:DeleteObject` {in_similar_prefix}": lambda: s3.delete_object(**sibling_object),
        "`s3:GetObject` of another tenant": lambda: s3.head_object(Bucket=bucket, Key="other/executions/seen"),
        "`s3:GetObject` in another bucket": lambda: s3.head_object(Bucket=f"{bucket}-other", Key=f"{prefix}/seen"),
        "`s3:ListBucket` of the prefix": lambda: s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/"),
        "`s3:ListBucket` of a prefix that begins alike": lambda: s3.list_objects_v2(
            Bucket=bucket, Prefix=f"{prefix}2/"
        ),
        "`s3:ListBucket` of the bucket's root": lambda: s3.list_objects_v2(Bucket=bucket),
        "`s3:ListBucketVersions` of the prefix": lambda: s3.list_object_versions(Bucket=bucket, Prefix=f"{prefix}/"),
        "`s3:ListBucketVersions` of a prefix that begins alike": lambda: s3.list_object_versions(
            Bucket=bucket, Prefix=f"{prefix}2/"
        ),
        "`s3:ListBucketVersions` of the bucket's root": lambda: s3.list_object_versions(Bucket=bucket),
        "`s3:GetBucketLocation`": lambda: s3.get_bucket_location(Bucket=bucket),
        "`s3:GetBucketPolicy`": lambda: s3.get_bucket_policy(Bucket=bucket),
        "`s3:PutBucketPolicy`": lambda: s3.put_bucket_policy(Bucket=bucket, Policy="{}"),
        "`s3:PutLifecycleConfiguration`": lambda: s3.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration=lifecycle
        ),
        "`s3:DeleteBucket`": lambda: s3.delete_bucket(Bucket=bucket),
        # Reading an object that the bucket's key encrypts needs the key, and so does writing one.
        "`kms:Decrypt` through S3 for an object under the prefix": lambda: s3.get_object(**own_object),
        "`kms:GenerateDataKey` through S3 for an object under the prefix": lambda: s3.put_object(**new),
        "`kms:Decrypt` through S3 for another object": lambda: s3.get_object(**sibling_object),
        "`kms:Decrypt` without S3": lambda: kms.decrypt(KeyId=key, CiphertextBlob=b"none"),
        "`kms:ScheduleKeyDeletion`": lambda: kms.schedule_key_deletion(KeyId=key),
        "`sts:AssumeRole` on another role": lambda: sts.assume_role(
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/other-{bucket}", RoleSessionName="test"
        ),
        "`iam:PutRolePolicy` on itself": lambda: iam.put_role_policy(
            RoleName=role.rpartition("/")[2], PolicyName="more", PolicyDocument="{}"
        ),
    }


@pytest.mark.long
def test_roles_of_a_tenant_have_the_documented_rights(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], permissions: ModuleType
) -> None:
    """Each row of the page's two tables that a call can confirm, with each kind of role."""
    tenant, iam, s3 = make_tenant(), aws("iam"), aws("s3")
    consumer, consumer_keys = create_user(iam, f"{tenant.name}-consumer")
    _, foreign_keys = create_user(iam, f"{tenant.name}-foreign", path=f"/accounts/{FOREIGN}/")
    principal = {"principal_arn": f"arn:aws:iam::{ACCOUNT}:user/{consumer}"}
    tenant.spec["storage"]["main"]["encryption"] = {"kms": "own"}
    tenant.spec["warehouses"] = [
        {"name": "executions", "deletion": "purge"},
        {"name": "signed", "deletion": "purge", "delegation": "remote-signing"},
        {
            "name": "split",
            "deletion": "purge",
            "vending_role": True,
            "maintenance_role": principal,
            "shares": {"bi": principal},
        },
    ]
    tenant.write()
    outputs = tenant.up()["outputs"]
    ids = json.loads(tenant.output("external-ids", "--json"))
    name, roles = tenant.name, outputs["role_arns"]
    lakekeeper = aws("sts", load(tenant.sandbox.credentials_file)[LAKEKEEPER])
    key = aws("kms").describe_key(KeyId=f"alias/{tenant.bucket}")["KeyMetadata"]["Arn"]
    s3.create_bucket(Bucket=f"{tenant.bucket}-other")
    split, consumer_roles = roles["split"], outputs["roles_of_others"]["split"]
    as_consumer = aws("sts", consumer_keys)
    sessions = {
        "catalog": ("executions", roles["executions"], lakekeeper, ids[f"{name}-executions"]),
        "signing": ("signed", roles["signed"], lakekeeper, ids[f"{name}-signed"]),
        "own-access": ("split", split, lakekeeper, ids[f"{name}-split"]),
        "vending": ("split", f"{split}.vending", lakekeeper, ids[f"{name}-split"]),
        "maintenance": ("split", consumer_roles["maintenance"], as_consumer, ids[f"{name}-split.maintenance"]),
        "share": ("split", consumer_roles["share-bi"], as_consumer, ids[f"{name}-split.share-bi"]),
    }
    expected = permissions.matrix(permissions.documents())

    results: dict[str, dict[str, str]] = {}
    for purpose, (warehouse, role, sts, external_id) in sessions.items():
        keys, prefix = assume_role(sts, role, external_id), f"{name}/{warehouse}"
        for directory in (prefix, f"{prefix}2"):
            s3.put_object(Bucket=tenant.bucket, Key=f"{directory}/seen", Body=b"x")
        clients = {service: aws(service, keys) for service in ("s3", "kms", "sts", "iam")}
        for row, call in calls(clients, tenant.bucket, prefix, key, role).items():
            results.setdefault(row, {})[purpose] = "yes" if is_allowed(call) else "no"

    assert results == expected["What may a role do?"]

    def assumes(sts: Any, purpose: str, external_id: str | None, **more: Any) -> bool:
        return is_allowed(lambda: assume_role(sts, sessions[purpose][1], external_id, **more))

    catalog_external_id, share = sessions["catalog"][3], sessions["share"][3]
    foreigner, administrator, of_tenant = aws("sts", foreign_keys), aws("sts"), aws("sts", keys)
    tags = {"Tags": [{"Key": "tenant", "Value": "acme"}]}
    trust = {
        "catalog's identity with the external ID": (lakekeeper, catalog_external_id, {}),
        "catalog's identity without external ID": (lakekeeper, None, {}),
        "catalog's identity with the external ID of another role": (lakekeeper, share, {}),
        "consumer with its external ID": (as_consumer, share, {}),
        "consumer without external ID": (as_consumer, None, {}),
        "role of a warehouse with the external ID": (of_tenant, catalog_external_id, {}),
        "administrator of the account with the external ID": (administrator, catalog_external_id, {}),
        "administrator of another account with the external ID": (foreigner, catalog_external_id, {}),
    }
    for row, (sts, external_id, more) in trust.items():
        for purpose, column in (("catalog", "catalog, vending"), ("share", "maintenance, share")):
            allowed = "yes" if assumes(sts, purpose, external_id, **more) else "no"
            assert allowed == expected["Who may assume a role?"][row][column], (row, column)
    # Without `session_tags` in the spec, no role trusts tags.
    assert not assumes(lakekeeper, "catalog", catalog_external_id, **tags)
    foreign_s3 = aws("s3", foreign_keys)
    with pytest.raises(ClientError, match="explicit deny in a resource-based policy"):
        foreign_s3.put_object(Bucket=tenant.bucket, Key="x", Body=b"x")
    assert expected["Whom do the buckets' policies let write?"]["role of another account that may do everything"] == {
        "bucket": "denied",
        "log bucket": "denied",
    }


def test_catalog_assumes_roles_of_the_path_only(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], permissions: ModuleType
) -> None:
    """A role of another path is denied even if it trusts the catalog."""
    tenant, iam = make_tenant(), aws("iam")
    lakekeeper = aws("sts", load(tenant.sandbox.credentials_file)[LAKEKEEPER])
    trust = json.dumps(permissions.static_trust(tenant.sandbox.aws.catalog_principal_arn))
    arns = [
        iam.create_role(RoleName=f"{tenant.name}-{index}", Path=path, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        for index, path in enumerate(("/lakewright/", "/", "/other/", "/lakewright2/"))
    ]

    assumed = [is_allowed(lambda arn=arn: assume_role(lakekeeper, arn)) for arn in arns]

    assert assumed == [True, False, False, False]
