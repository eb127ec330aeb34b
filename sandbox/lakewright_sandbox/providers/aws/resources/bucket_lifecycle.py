"""`aws.s3.BucketLifecycleConfiguration`: convert rules between Pulumi's names and S3's."""

from __future__ import annotations

import datetime
from typing import Any

from typing_extensions import override

from lakewright_sandbox.providers.aws.resources.bucket_settings import BucketSetting
from lakewright_sandbox.providers.aws.resources.kind import (
    REGION,
    ResourceProperty,
    prune,
    tags_from_aws,
    tags_to_aws,
    timestamp,
)
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.typed.json_values import is_array, is_object


class BucketLifecycle(BucketSetting):
    """When objects, old versions and unfinished uploads expire."""

    token = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"  # noqa: S105
    title = "lifecycle of bucket"
    absent = "NoSuchLifecycleConfiguration"
    properties = {
        "bucket": ResourceProperty(replaces=True, required=True),
        "region": REGION,
        "rules": ResourceProperty(required=True, identity="id"),
    }
    computed_outputs = ("region",)

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        rules = [_to_s3(prune(rule)) for rule in inputs["rules"]]
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        return {"rules": [prune(_from_s3(rule)) for rule in rules]}

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        s3.delete_bucket_lifecycle(Bucket=bucket)


def _to_s3(rule: Properties) -> Properties:
    written = _rename_for_s3(rule)
    if "Prefix" not in written:
        # S3 requires a filter; an empty prefix selects every object.
        written["Filter"] = written.get("Filter") or {"Prefix": ""}
    return written


def _rename_for_s3(value: Any) -> Any:
    if is_array(value):
        return [_rename_for_s3(item) for item in value]
    if not is_object(value):
        return value
    written: Properties = {}
    for key, item in value.items():
        if key == "id":
            written["ID"] = item
        elif key == "tags":
            written["Tags"] = tags_to_aws(item)
        else:
            written[key[0].upper() + key[1:]] = _rename_for_s3(item)
    return written


def _from_s3(value: Any) -> Any:
    if is_array(value):
        return [_from_s3(item) for item in value]
    if isinstance(value, datetime.datetime):
        return timestamp(value)
    if not is_object(value):
        return value
    read: Properties = {}
    for key, item in value.items():
        if key == "ID":
            read["id"] = item
        elif key == "Tags":
            read["tags"] = tags_from_aws(item)
        else:
            read[key[0].lower() + key[1:]] = _from_s3(item)
    return read
