"""`aws.s3.Bucket`: created with its tags or not at all; `forceDestroy` deletes all object versions first."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from lakewright_sandbox.providers.aws.resources.calls import (
    describe_errors,
    ignore_codes,
    mark_after_create,
)
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.kind import (
    REGION,
    ResourceKind,
    ResourceProperty,
    tags_from_aws,
    tags_to_aws,
)
from lakewright_sandbox.providers.protocol.errors import AwsCallError
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.typed.boto import ClientError, error_code

# S3 website endpoints' hosted zones, from "Amazon S3 endpoints and quotas" of the AWS General Reference.
_HOSTED_ZONES = {
    "ap-northeast-1": "Z2M4EHUR26P7ZW",
    "ap-southeast-1": "Z3O0J2DXBE1FTB",
    "ap-southeast-2": "Z1WCIGYICN2BYD",
    "eu-central-1": "Z21DNDUVLTQW6Q",
    "eu-west-1": "Z1BKCTXD74EZPE",
    "sa-east-1": "Z7KQH4QJS55SO",
    "us-east-1": "Z3AQBSTGFYJSTF",
    "us-east-2": "Z2O1EMRO9K5GLX",
    "us-west-1": "Z2F56UZL2M1ACD",
    "us-west-2": "Z3BJ6K6RIION7M",
}
# us-east-1 cannot be named as a location, and creating an existing bucket of the same owner succeeds there.
_FIRST_REGION = "us-east-1"
GONE = ("404", "NoSuchBucket", "NotFound")


class S3Bucket(ResourceKind):
    """An S3 bucket without its settings, which are separate resources."""

    token = "aws:s3/bucket:Bucket"  # noqa: S105
    title = "bucket"
    properties = {
        "bucket": ResourceProperty(replaces=True, required=True),
        "forceDestroy": ResourceProperty(default=False),
        "region": REGION,
        "tags": ResourceProperty(default={}),
    }
    computed_outputs = (
        "arn",
        "bucketDomainName",
        "bucketRegion",
        "bucketRegionalDomainName",
        "hostedZoneId",
        "region",
        "tagsAll",
    )

    @override
    def find_id(self, inputs: Properties) -> str:
        return inputs["bucket"]

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> None:
        name, region = inputs["bucket"], inputs.get("region") or aws.region
        s3 = aws.client("s3", region)
        with describe_errors(f"looking for the bucket {name} before creating it", aws.get_endpoint("s3")):
            taken = region == _FIRST_REGION and _exists(s3, name)
        if taken:
            raise AwsCallError(
                "BucketAlreadyOwnedByYou",
                f"creating the bucket {name}: AWS at {aws.get_endpoint('s3')} responded with BucketAlreadyOwnedByYou: "
                "it exists outside this stack: import it (`import_` in the resource's options), or choose another name",
            )
        configuration = {} if region == _FIRST_REGION else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        aws.client("s3", region, once=True).create_bucket(Bucket=name, **configuration)
        with mark_after_create(f"tagging the bucket {name}", aws.get_endpoint("s3")):
            refusal = _tags_refused(s3, name, inputs.get("tags"))
        if refusal:
            raise refusal

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        s3 = aws.client("s3", olds.get("region"))
        try:
            head = s3.head_bucket(Bucket=resource_id)
        except ClientError as error:
            if error_code(error) in GONE:
                return None
            raise
        tags: dict[str, str] = {}
        with ignore_codes("NoSuchTagSet"):
            tags = tags_from_aws(s3.get_bucket_tagging(Bucket=resource_id)["TagSet"])
        region = head.get("BucketRegion") or olds.get("region") or aws.region
        outputs: Properties = {
            "arn": f"arn:aws:s3:::{resource_id}",
            "bucket": resource_id,
            "bucketDomainName": f"{resource_id}.s3.amazonaws.com",
            "bucketRegion": region,
            "bucketRegionalDomainName": f"{resource_id}.s3.{region}.amazonaws.com",
            "forceDestroy": bool(olds.get("forceDestroy")),
            "region": region,
            "tags": tags,
            "tagsAll": tags,
        }
        if region in _HOSTED_ZONES:
            outputs["hostedZoneId"] = _HOSTED_ZONES[region]
        return outputs

    @override
    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        _tag(aws.client("s3", olds.get("region")), resource_id, news.get("tags"), olds.get("tags"))

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        s3 = aws.client("s3", olds.get("region"))
        with ignore_codes(*GONE):
            if olds.get("forceDestroy"):
                _empty(s3, resource_id)
            s3.delete_bucket(Bucket=resource_id)


def _exists(s3: Any, name: str) -> bool:
    """Return whether the bucket exists in this account; CreateBucket refuses one of another account."""
    try:
        s3.head_bucket(Bucket=name)
    except ClientError as error:
        if error_code(error) in (*GONE, "403"):
            return False
        raise
    return True


def _tag(s3: Any, name: str, tags: Properties | None, before: Properties | None) -> None:
    if tags:
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags_to_aws(tags)})
    elif before:
        s3.delete_bucket_tagging(Bucket=name)


def _tags_refused(s3: Any, name: str, tags: Properties | None) -> ClientError | None:
    """Tag a new bucket. If AWS refuses that, delete the bucket again and return the error."""
    try:
        _tag(s3, name, tags, {})
    except ClientError as error:
        s3.delete_bucket(Bucket=name)
        return error
    return None


def _empty(s3: Any, name: str) -> None:
    """Delete all object versions and delete markers."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        if not versions:
            continue
        objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in versions]
        response = s3.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True})
        for failed in response.get("Errors", []):
            raise AwsCallError(
                failed["Code"],
                f"emptying the bucket {name}: AWS responded with {failed['Code']} for {failed['Key']}: "
                f"{failed.get('Message', 'no message')}",
            )
