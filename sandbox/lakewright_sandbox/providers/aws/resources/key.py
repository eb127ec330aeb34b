"""`aws.kms.Key` and `aws.kms.Alias`: an encryption key, and a name for it."""

from __future__ import annotations

from typing_extensions import override

from lakewright_sandbox.providers.aws.resources.calls import ignore_codes
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.kind import REGION, ResourceKind, ResourceProperty, list_removed_tags
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.typed.boto import ClientError, error_code

_NOT_FOUND_CODE = "NotFoundException"
_WINDOW_DAYS = 30


class KmsKey(ResourceKind):
    """A KMS key. AWS chooses its id; deleting it schedules its deletion."""

    token = "aws:kms/key:Key"  # noqa: S105
    title = "KMS key"
    properties = {
        "deletionWindowInDays": ResourceProperty(computed=True),
        "description": ResourceProperty(computed=True),
        "enableKeyRotation": ResourceProperty(default=False),
        "isEnabled": ResourceProperty(default=True),
        "region": REGION,
        "tags": ResourceProperty(default={}),
    }
    computed_outputs = ("arn", "customerMasterKeySpec", "keyId", "keyUsage", "multiRegion", "policy", "tagsAll")

    @override
    def find_id(self, inputs: Properties) -> str:
        return ""

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> str:
        kms = aws.client("kms", inputs.get("region"), once=True)
        tags = _to_aws(inputs.get("tags") or {})
        description = inputs.get("description") or ""
        key = kms.create_key(Description=description, Tags=tags, KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]
        key_id: str = key["KeyId"]
        if inputs.get("enableKeyRotation"):
            kms.enable_key_rotation(KeyId=key_id)
        if inputs.get("isEnabled") is False:
            kms.disable_key(KeyId=key_id)
        return key_id

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        kms = aws.client("kms", olds.get("region"))
        if not resource_id:
            return None
        try:
            key = kms.describe_key(KeyId=resource_id)["KeyMetadata"]
        except ClientError as error:
            if error_code(error) == _NOT_FOUND_CODE:
                return None
            raise
        if key["KeyState"] == "PendingDeletion":
            return None
        tags = {tag["TagKey"]: tag["TagValue"] for tag in kms.list_resource_tags(KeyId=resource_id)["Tags"]}
        return {
            "arn": key["Arn"],
            "customerMasterKeySpec": key["CustomerMasterKeySpec"],
            "deletionWindowInDays": olds.get("deletionWindowInDays"),
            "description": key["Description"],
            "enableKeyRotation": kms.get_key_rotation_status(KeyId=resource_id)["KeyRotationEnabled"],
            "isEnabled": key["Enabled"],
            "keyId": key["KeyId"],
            "keyUsage": key["KeyUsage"],
            "multiRegion": key.get("MultiRegion", False),
            "policy": kms.get_key_policy(KeyId=resource_id, PolicyName="default")["Policy"],
            "region": olds.get("region") or aws.region,
            "tags": tags,
            "tagsAll": tags,
        }

    @override
    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        kms = aws.client("kms", olds.get("region"))
        if news.get("description") is not None:
            kms.update_key_description(KeyId=resource_id, Description=news["description"])
        if _is_on(olds, "isEnabled") != (enabled := _is_on(news, "isEnabled")):
            (kms.enable_key if enabled else kms.disable_key)(KeyId=resource_id)
        if _is_on(olds, "enableKeyRotation") != (rotated := _is_on(news, "enableKeyRotation")):
            (kms.enable_key_rotation if rotated else kms.disable_key_rotation)(KeyId=resource_id)
        removed_names = list_removed_tags(olds, news)
        if removed_names:
            kms.untag_resource(KeyId=resource_id, TagKeys=removed_names)
        if news.get("tags"):
            kms.tag_resource(KeyId=resource_id, Tags=_to_aws(news["tags"]))

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        days = olds.get("deletionWindowInDays") or _WINDOW_DAYS
        with ignore_codes(_NOT_FOUND_CODE, "KMSInvalidStateException"):
            aws.client("kms", olds.get("region")).schedule_key_deletion(KeyId=resource_id, PendingWindowInDays=days)


class KmsAlias(ResourceKind):
    """A name for a KMS key."""

    token = "aws:kms/alias:Alias"  # noqa: S105
    title = "KMS alias"
    properties = {
        "name": ResourceProperty(replaces=True, required=True),
        "region": REGION,
        "targetKeyId": ResourceProperty(required=True),
    }
    computed_outputs = ("arn", "targetKeyArn")

    @override
    def find_id(self, inputs: Properties) -> str:
        return inputs["name"]

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> None:
        kms = aws.client("kms", inputs.get("region"), once=True)
        kms.create_alias(AliasName=inputs["name"], TargetKeyId=inputs["targetKeyId"])

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        pages = aws.client("kms", olds.get("region")).get_paginator("list_aliases").paginate()
        aliases = (alias for page in pages for alias in page["Aliases"] if alias["AliasName"] == resource_id)
        alias = next(aliases, None)
        if alias is None or not alias.get("TargetKeyId"):
            return None
        key_arn = f"{alias['AliasArn'].partition(':alias/')[0]}:key/{alias['TargetKeyId']}"
        return {
            "arn": alias["AliasArn"],
            "name": resource_id,
            "region": olds.get("region") or aws.region,
            "targetKeyArn": key_arn,
            "targetKeyId": alias["TargetKeyId"],
        }

    @override
    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        kms = aws.client("kms", olds.get("region"))
        kms.update_alias(AliasName=resource_id, TargetKeyId=news["targetKeyId"])

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        with ignore_codes(_NOT_FOUND_CODE):
            aws.client("kms", olds.get("region")).delete_alias(AliasName=resource_id)


def _to_aws(tags: Properties) -> list[dict[str, str]]:
    return [{"TagKey": key, "TagValue": str(value)} for key, value in sorted(tags.items())]


def _is_on(properties: Properties, name: str) -> bool:
    return bool(properties.get(name, KmsKey.properties[name].default))
