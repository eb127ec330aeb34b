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
    key_id, outputs = provider.create(KEY, inputs)
    yield key_id, inputs, outputs
    provider.delete(KEY, key_id, outputs)


def test_a_key_has_its_declared_properties(provider: Any, aws: Any, key: Any) -> None:
    key_id, inputs, outputs = key
    assert outputs["arn"] == f"arn:aws:kms:us-east-1:123456789012:key/{key_id}"
    assert outputs["keyId"] == key_id
    assert outputs["tagsAll"] == {"owner": "data"}
    assert aws.client("kms").get_key_rotation_status(KeyId=key_id)["KeyRotationEnabled"]
    assert provider.list_changes(KEY, key_id, outputs, inputs) == []


def test_drift_of_each_property_of_a_key_is_fixed(provider: Any, aws: Any, key: Any) -> None:
    key_id, inputs, outputs = key
    kms = aws.client("kms")
    kms.update_key_description(KeyId=key_id, Description="of another")
    kms.disable_key_rotation(KeyId=key_id)
    kms.tag_resource(KeyId=key_id, Tags=[{"TagKey": "owner", "TagValue": "nobody"}])
    kms.disable_key(KeyId=key_id)

    _, live_outputs, _ = provider.read(KEY, key_id, outputs, inputs)

    assert provider.list_changes(KEY, key_id, live_outputs, inputs) == [
        "description",
        "enableKeyRotation",
        "isEnabled",
        "tags.owner",
    ]
    healed = provider.update(KEY, key_id, live_outputs, inputs)
    assert provider.list_changes(KEY, key_id, healed, inputs) == []
    assert kms.describe_key(KeyId=key_id)["KeyMetadata"]["Enabled"]


def test_a_key_pending_deletion_counts_as_deleted(provider: Any, aws: Any) -> None:
    key_id, outputs = provider.create(KEY, {"deletionWindowInDays": 7})
    provider.delete(KEY, key_id, outputs)
    assert aws.client("kms").describe_key(KeyId=key_id)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    assert not provider.read(KEY, key_id, outputs)[0]
    provider.delete(KEY, key_id, outputs)


def test_an_alias_follows_its_key(provider: Any, aws: Any, key: Any) -> None:
    name = f"alias/{uuid4().hex}"
    inputs = {"name": name, "targetKeyId": key[0]}
    alias_id, outputs = provider.create(ALIAS, inputs)
    assert (alias_id, outputs["targetKeyArn"]) == (name, key[2]["arn"])
    other = aws.client("kms").create_key()["KeyMetadata"]["KeyId"]
    aws.client("kms").update_alias(AliasName=name, TargetKeyId=other)
    _, live_outputs, _ = provider.read(ALIAS, alias_id, outputs, inputs)
    assert provider.list_changes(ALIAS, alias_id, live_outputs, inputs) == ["targetKeyId"]
    healed = provider.update(ALIAS, alias_id, live_outputs, inputs)
    assert healed["targetKeyId"] == key[0]
    provider.delete(ALIAS, alias_id, healed)
    assert not provider.read(ALIAS, alias_id, healed)[0]
