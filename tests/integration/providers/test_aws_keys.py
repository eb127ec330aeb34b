"""KMS keys and their aliases, over the provider protocol."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

KEY = "aws:kms/key:Key"
ALIAS = "aws:kms/alias:Alias"


@pytest.fixture
def key(provider: Any) -> Any:
    inputs = {"description": "of a test", "enableKeyRotation": True, "tags": {"owner": "data"}}
    made, outputs = provider.create(KEY, inputs)
    yield made, inputs, outputs
    provider.delete(KEY, made, outputs)


def test_a_key_is_what_was_declared(provider: Any, aws: Any, key: Any) -> None:
    made, inputs, outputs = key
    assert outputs["arn"] == f"arn:aws:kms:us-east-1:123456789012:key/{made}"
    assert outputs["keyId"] == made
    assert outputs["tagsAll"] == {"owner": "data"}
    assert aws.client("kms").get_key_rotation_status(KeyId=made)["KeyRotationEnabled"]
    assert provider.changed(KEY, made, outputs, inputs) == []


def test_drift_of_each_property_of_a_key_is_fixed(provider: Any, aws: Any, key: Any) -> None:
    made, inputs, outputs = key
    kms = aws.client("kms")
    kms.update_key_description(KeyId=made, Description="of another")
    kms.disable_key_rotation(KeyId=made)
    kms.tag_resource(KeyId=made, Tags=[{"TagKey": "owner", "TagValue": "nobody"}])
    kms.disable_key(KeyId=made)

    _, found, _ = provider.read(KEY, made, outputs, inputs)

    assert provider.changed(KEY, made, found, inputs) == ["description", "enableKeyRotation", "isEnabled", "tags.owner"]
    healed = provider.update(KEY, made, found, inputs)
    assert provider.changed(KEY, made, healed, inputs) == []
    assert kms.describe_key(KeyId=made)["KeyMetadata"]["Enabled"]


def test_a_key_pending_deletion_counts_as_deleted(provider: Any, aws: Any) -> None:
    made, outputs = provider.create(KEY, {"deletionWindowInDays": 7})
    provider.delete(KEY, made, outputs)
    assert aws.client("kms").describe_key(KeyId=made)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    assert not provider.read(KEY, made, outputs)[0]
    provider.delete(KEY, made, outputs)


def test_an_alias_follows_its_key(provider: Any, aws: Any, key: Any) -> None:
    name = f"alias/{uuid4().hex}"
    inputs = {"name": name, "targetKeyId": key[0]}
    made, outputs = provider.create(ALIAS, inputs)
    assert (made, outputs["targetKeyArn"]) == (name, key[2]["arn"])
    other = aws.client("kms").create_key()["KeyMetadata"]["KeyId"]
    aws.client("kms").update_alias(AliasName=name, TargetKeyId=other)
    _, found, _ = provider.read(ALIAS, made, outputs, inputs)
    assert provider.changed(ALIAS, made, found, inputs) == ["targetKeyId"]
    healed = provider.update(ALIAS, made, found, inputs)
    assert healed["targetKeyId"] == key[0]
    provider.delete(ALIAS, made, healed)
    assert not provider.read(ALIAS, made, healed)[0]
