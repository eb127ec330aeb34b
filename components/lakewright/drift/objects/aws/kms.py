"""KMS keys and aliases: a list of aliases per region, and three calls for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakewright.drift.objects.aws.account import AwsAccountReader, ReadRefusedError, explain_errors, find_region
from lakewright.drift.objects.aws.comparison import ComparedProperty, is_as_declared, to_tags
from lakewright.drift.session import ScanSession, StackResource
from lakewright.validation.documents import as_list, as_mapping

_KEY = "aws:kms/key:Key"
_ALIAS = "aws:kms/alias:Alias"
_REGION = ComparedProperty(computed=True, stored=True)

_PROPERTIES: dict[str, dict[str, ComparedProperty]] = {
    _KEY: {
        "deletionWindowInDays": ComparedProperty(computed=True, stored=True),
        "description": ComparedProperty(computed=True),
        "enableKeyRotation": ComparedProperty(default=False),
        "isEnabled": ComparedProperty(default=True),
        "region": _REGION,
        "tags": ComparedProperty(default={}),
    },
    _ALIAS: {"name": ComparedProperty(), "region": _REGION, "targetKeyId": ComparedProperty()},
}
"""Kinds by type token. A kind that is not here is compared by the provider."""


def may_differ(
    resources: Sequence[StackResource], account: AwsAccountReader, session: ScanSession
) -> list[StackResource]:
    """Return the resources that the provider must compare: all that are not surely as declared.

    Args:
        resources: Resources of KMS.
        account: The account.
        session: The run.

    Raises:
        AccountUnreachableError: KMS does not respond.
    """
    regions = {find_region(resource) for resource in resources if resource.state.type == _ALIAS}
    aliases = {region: _list_aliases(account, region) for region in sorted(regions)}

    def is_same(resource: StackResource) -> bool:
        state = resource.state
        region_aliases = aliases[find_region(resource)] if state.type == _ALIAS else {}
        live = region_aliases.get(state.id) if state.type == _ALIAS else _read_key(resource, account)
        properties = _PROPERTIES.get(state.type)
        return properties is not None and live is not None and is_as_declared(state, properties, live)

    same = session.map(is_same, resources)
    return [resource for resource, as_declared in zip(resources, same, strict=True) if not as_declared]


def _list_aliases(account: AwsAccountReader, region: str) -> dict[str, Mapping[str, Any]]:
    """Return the live properties of the aliases of a region by name; none if they may not be listed."""
    try:
        with explain_errors("KMS"):
            pages = account.client("kms", region).get_paginator("list_aliases").paginate()
            entries = [as_mapping(alias) for page in pages for alias in as_list(page.get("Aliases"))]
    except ReadRefusedError:
        return {}
    return {
        str(alias["AliasName"]): {"name": alias["AliasName"], "targetKeyId": alias.get("TargetKeyId")}
        for alias in entries
    }


def _read_key(resource: StackResource, account: AwsAccountReader) -> Mapping[str, Any] | None:
    """Return the live properties of a key; None if it does not exist, is being deleted or cannot be read."""
    state = resource.state
    if state.type != _KEY or not state.id:
        return None
    kms = account.client("kms", find_region(resource))
    try:
        with explain_errors("KMS"):
            key = as_mapping(kms.describe_key(KeyId=state.id)["KeyMetadata"])
            if key.get("KeyState") not in ("Enabled", "Disabled"):
                return None
            tags = kms.list_resource_tags(KeyId=state.id)
            rotation = kms.get_key_rotation_status(KeyId=state.id)
    except ReadRefusedError:
        return None
    if tags.get("Truncated"):
        return None
    return {
        "description": key.get("Description"),
        "enableKeyRotation": bool(rotation["KeyRotationEnabled"]),
        "isEnabled": bool(key.get("Enabled")),
        "tags": to_tags(tags.get("Tags"), "TagKey", "TagValue"),
    }
