"""Buckets and their settings, over the provider protocol and the sandbox's S3."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import grpc
import pytest

BUCKET = "aws:s3/bucket:Bucket"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
PUBLIC_ACCESS = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
OWNERSHIP = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
POLICY = "aws:s3/bucketPolicy:BucketPolicy"
LOGGING = "aws:s3/bucketLogging:BucketLogging"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"


def tls_only(bucket: str, **more: Any) -> str:
    statement = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement | more]})


# A kind, its declared inputs, the call that changes it outside the stack, and the properties of the next diff.
Setting = tuple[str, dict[str, Any], str, dict[str, Any], list[str]]
SETTINGS: list[Setting] = [
    (
        VERSIONING,
        {"versioningConfiguration": {"status": "Enabled"}},
        "put_bucket_versioning",
        {"VersioningConfiguration": {"Status": "Suspended"}},
        ["versioningConfiguration.status"],
    ),
    (
        ENCRYPTION,
        {"rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}]},
        "put_bucket_encryption",
        {
            "ServerSideEncryptionConfiguration": {
                "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "k"}}]
            }
        },
        [
            "rules[0].applyServerSideEncryptionByDefault.kmsMasterKeyId",
            "rules[0].applyServerSideEncryptionByDefault.sseAlgorithm",
        ],
    ),
    (
        PUBLIC_ACCESS,
        {
            "blockPublicAcls": True,
            "blockPublicPolicy": True,
            "ignorePublicAcls": True,
            "restrictPublicBuckets": True,
        },
        "put_public_access_block",
        {"PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "IgnorePublicAcls": True}},
        ["blockPublicPolicy", "restrictPublicBuckets"],
    ),
    (
        OWNERSHIP,
        {"rule": {"objectOwnership": "BucketOwnerEnforced"}},
        "put_bucket_ownership_controls",
        {"OwnershipControls": {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}},
        ["rule.objectOwnership"],
    ),
    (
        LIFECYCLE,
        {
            "rules": [
                {
                    "id": "uploads",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    "abortIncompleteMultipartUpload": {"daysAfterInitiation": 3},
                },
                {"id": "old", "status": "Enabled", "noncurrentVersionExpiration": {"noncurrentDays": 30}},
                {
                    "id": "logs",
                    "status": "Enabled",
                    "filter": {"and": {"prefix": "logs/", "tags": {"keep": "short"}}},
                    "expiration": {"days": 7},
                },
            ]
        },
        "put_bucket_lifecycle_configuration",
        {
            "LifecycleConfiguration": {
                "Rules": [
                    {
                        "ID": "old",
                        "Status": "Enabled",
                        "Filter": {"Prefix": ""},
                        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                    }
                ]
            }
        },
        ["rules[0]", "rules[1].noncurrentVersionExpiration.noncurrentDays", "rules[2]"],
    ),
]


@pytest.fixture
def bucket(provider: Any) -> Any:
    name = f"b-{uuid4().hex[:12]}"
    bucket_id, outputs = provider.create(BUCKET, {"bucket": name, "forceDestroy": True})
    yield bucket_id
    provider.delete(BUCKET, bucket_id, outputs)


def test_a_bucket_is_created_with_the_real_providers_outputs(provider: Any, aws: Any) -> None:
    name = f"b-{uuid4().hex[:12]}"
    inputs = {"bucket": name, "tags": {"owner": "data"}}
    checked = provider.check(BUCKET, inputs)
    assert not checked.failures

    bucket_id, outputs = provider.create(BUCKET, inputs)

    assert bucket_id == name
    assert outputs == {
        "arn": f"arn:aws:s3:::{name}",
        "bucket": name,
        "bucketDomainName": f"{name}.s3.amazonaws.com",
        "bucketRegion": "us-east-1",
        "bucketRegionalDomainName": f"{name}.s3.us-east-1.amazonaws.com",
        "forceDestroy": False,
        "hostedZoneId": "Z3AQBSTGFYJSTF",
        "region": "us-east-1",
        "tags": {"owner": "data"},
        "tagsAll": {"owner": "data"},
    }
    assert provider.list_changes(BUCKET, bucket_id, outputs, inputs) == []
    provider.delete(BUCKET, bucket_id, outputs)
    assert name not in [b["Name"] for b in aws.client("s3").list_buckets()["Buckets"]]
    assert provider.read(BUCKET, bucket_id, outputs, inputs) == ("", {}, {})


def test_a_bucket_in_another_region_stays_there(provider: Any, aws: Any) -> None:
    name = f"b-{uuid4().hex[:12]}"
    inputs = {"bucket": name, "region": "eu-central-1"}
    bucket_id, outputs = provider.create(BUCKET, inputs)
    assert outputs["bucketRegionalDomainName"] == f"{name}.s3.eu-central-1.amazonaws.com"
    assert aws.client("s3").get_bucket_location(Bucket=name)["LocationConstraint"] == "eu-central-1"
    assert list(provider.diff(BUCKET, bucket_id, outputs, {"bucket": name, "region": "us-west-2"}).replaces) == [
        "region"
    ]
    provider.delete(BUCKET, bucket_id, outputs)


def test_changed_tags_are_drift_and_update_restores_them(provider: Any, aws: Any, bucket: str) -> None:
    s3 = aws.client("s3")
    declared_inputs = {"bucket": bucket, "forceDestroy": True, "tags": {"owner": "data"}}
    _, before, _ = provider.read(BUCKET, bucket)
    outputs = provider.update(BUCKET, bucket, before, declared_inputs)
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "owner", "Value": "nobody"}]})

    _, live, inputs = provider.read(BUCKET, bucket, outputs, declared_inputs)

    assert inputs == declared_inputs | {"tags": {"owner": "nobody"}}
    assert provider.list_changes(BUCKET, bucket, live, declared_inputs) == ["tags.owner"]
    assert provider.update(BUCKET, bucket, live, declared_inputs)["tagsAll"] == {"owner": "data"}
    assert provider.update(BUCKET, bucket, live, {"bucket": bucket, "forceDestroy": True})["tags"] == {}


def test_a_bucket_that_exists_is_refused_as_aws_does(provider: Any, bucket: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        provider.create(BUCKET, {"bucket": bucket})
    assert "BucketAlreadyOwnedByYou" in refused.value.details()
    assert "import" in refused.value.details()


def test_a_bucket_is_imported_by_its_name_alone(provider: Any, bucket: str) -> None:
    bucket_id, outputs, inputs = provider.read(BUCKET, bucket)
    assert bucket_id == bucket
    assert inputs == {"bucket": bucket, "region": "us-east-1"}
    assert provider.list_changes(BUCKET, bucket, outputs, inputs) == []


def test_an_interrupted_create_is_found_by_its_inputs(provider: Any, bucket: str) -> None:
    bucket_id, outputs, _ = provider.read(BUCKET, "", inputs={"bucket": bucket, "tags": {"owner": "data"}})
    assert bucket_id == bucket
    assert provider.list_changes(BUCKET, bucket, outputs, {"bucket": bucket, "tags": {"owner": "data"}}) == ["tags"]
    assert provider.read(BUCKET, "", inputs={"bucket": f"never-{uuid4().hex}"})[0] == ""


def test_a_renamed_bucket_is_created_before_the_old_is_deleted(provider: Any, bucket: str) -> None:
    _, outputs, _ = provider.read(BUCKET, bucket)
    renamed = provider.diff(BUCKET, bucket, outputs, {"bucket": f"{bucket}-2"})
    assert list(renamed.replaces) == ["bucket"]
    assert not renamed.deleteBeforeReplace


def test_a_bucket_with_objects_is_deleted_by_force_destroy_only(provider: Any, aws: Any) -> None:
    name, s3 = f"b-{uuid4().hex[:12]}", aws.client("s3")
    bucket_id, outputs = provider.create(BUCKET, {"bucket": name})
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"1", b"2"):
        s3.put_object(Bucket=name, Key="a", Body=body)
    s3.delete_object(Bucket=name, Key="a")

    with pytest.raises(grpc.RpcError) as refused:
        provider.delete(BUCKET, bucket_id, outputs)
    assert "BucketNotEmpty" in refused.value.details()
    assert "forceDestroy" in refused.value.details()

    outputs = provider.update(BUCKET, bucket_id, outputs, {"bucket": name, "forceDestroy": True})
    provider.delete(BUCKET, bucket_id, outputs)
    assert provider.read(BUCKET, bucket_id, outputs)[0] == ""


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting[0].rsplit(":", 1)[-1])
def test_a_setting_is_created_read_and_its_drift_fixed(provider: Any, aws: Any, bucket: str, setting: Setting) -> None:
    kind, setting_inputs, call, change, drift = setting
    inputs = {"bucket": bucket} | setting_inputs
    assert not provider.check(kind, inputs).failures
    setting_id, outputs = provider.create(kind, inputs)
    assert setting_id == bucket
    assert provider.list_changes(kind, setting_id, outputs, inputs) == []
    _, live, read_inputs = provider.read(kind, setting_id, outputs, inputs)
    assert (live, read_inputs) == (outputs, inputs)

    getattr(aws.client("s3"), call)(Bucket=bucket, **change)
    _, live, _ = provider.read(kind, setting_id, outputs, inputs)
    assert provider.list_changes(kind, setting_id, live, inputs) == drift

    healed = provider.update(kind, setting_id, live, inputs)
    assert provider.list_changes(kind, setting_id, healed, inputs) == []
    assert list(provider.diff(kind, setting_id, healed, inputs | {"bucket": "other"}).replaces) == ["bucket"]
    provider.delete(kind, setting_id, healed)
    provider.delete(kind, setting_id, healed)


def test_a_policy_is_compared_by_meaning(provider: Any, aws: Any, bucket: str) -> None:
    inputs = {"bucket": bucket, "policy": tls_only(bucket)}
    policy_id, outputs = provider.create(POLICY, inputs)
    assert outputs["policy"] == inputs["policy"]
    reordered = json.loads(inputs["policy"])
    reordered["Statement"] = reordered["Statement"][0] | {"Action": ["s3:*"], "Principal": {"AWS": "*"}}
    reordered["Statement"]["Resource"].reverse()
    assert provider.list_changes(POLICY, policy_id, outputs, inputs | {"policy": json.dumps(reordered)}) == []

    aws.client("s3").put_bucket_policy(Bucket=bucket, Policy=tls_only(bucket, Sid="Weaker", Action="s3:GetObject"))
    _, live, _ = provider.read(POLICY, policy_id, outputs, inputs)
    assert provider.list_changes(POLICY, policy_id, live, inputs) == ["policy"]
    aws.client("s3").delete_bucket_policy(Bucket=bucket)
    assert provider.read(POLICY, policy_id, outputs, inputs)[0] == ""
    assert [f.property for f in provider.check(POLICY, inputs | {"policy": "not json"}).failures] == ["policy"]


def test_logging_is_created_read_and_its_drift_fixed(provider: Any, aws: Any, bucket: str) -> None:
    s3, target = aws.client("s3"), f"logs-{uuid4().hex[:12]}"
    s3.create_bucket(Bucket=target)
    service = {
        "Effect": "Allow",
        "Principal": {"Service": "logging.s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{target}/*",
    }
    s3.put_bucket_policy(Bucket=target, Policy=json.dumps({"Version": "2012-10-17", "Statement": [service]}))
    inputs = {"bucket": bucket, "targetBucket": target, "targetPrefix": "a/"}

    logging_id, outputs = provider.create(LOGGING, inputs)
    assert (logging_id, provider.list_changes(LOGGING, logging_id, outputs, inputs)) == (bucket, [])
    other = {"LoggingEnabled": {"TargetBucket": target, "TargetPrefix": "b/"}}
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=other)
    _, live, _ = provider.read(LOGGING, logging_id, outputs, inputs)
    assert provider.list_changes(LOGGING, logging_id, live, inputs) == ["targetPrefix"]
    healed = provider.update(LOGGING, logging_id, live, inputs)
    assert provider.list_changes(LOGGING, logging_id, healed, inputs) == []

    provider.delete(LOGGING, logging_id, healed)
    assert provider.read(LOGGING, logging_id, healed, inputs)[0] == ""


def test_settings_of_a_deleted_bucket_are_missing(provider: Any) -> None:
    for kind, setting_inputs, *_ in SETTINGS:
        assert provider.read(kind, f"never-{uuid4().hex}", {}, setting_inputs)[0] == ""


def test_unsupported_types_are_refused_by_name(provider: Any) -> None:
    failures = provider.check(BUCKET, {"bucket": "b", "acl": "private"}).failures
    assert [f.property for f in failures] == ["acl"]
    assert "pulumi plugin install resource aws" in failures[0].reason
    assert [f.property for f in provider.check(BUCKET, {}).failures] == ["bucket"]
    with pytest.raises(grpc.RpcError) as refused:
        provider.check("aws:sqs/queue:Queue", {"name": "q"})
    assert "aws:sqs/queue:Queue" in refused.value.details()


def test_previews_show_values_that_aws_chooses_as_unknown(provider: Any, bucket: str) -> None:
    bucket_id, outputs = provider.create(BUCKET, {"bucket": "not-yet"}, preview=True)
    assert bucket_id == ""
    assert outputs["bucket"] == "not-yet"
    assert outputs["arn"] == "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    _, live, _ = provider.read(BUCKET, bucket)
    state = provider.update(BUCKET, bucket, live, {"bucket": bucket, "tags": {"a": "b"}}, preview=True)
    assert state["arn"] == f"arn:aws:s3:::{bucket}"
    assert state["tagsAll"] == {"a": "b"}
