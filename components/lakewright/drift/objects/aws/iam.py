"""Roles and their policies: two lists for all roles of the account; without the right to list, a call for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakewright_engine.model.resources import ResourceState

from lakewright.credentials.policy_fingerprint import TRUST_FINGERPRINT, fingerprint_policy, normalize_policy
from lakewright.drift.objects.aws.account import AwsAccountReader, ReadRefusedError, explain_errors
from lakewright.drift.objects.aws.comparison import ComparedProperty, is_as_declared, to_tags
from lakewright.drift.session import ScanSession, StackResource
from lakewright.validation.documents import as_list, as_mapping

_ROLE = "aws:iam/role:Role"
_TRUST = "assumeRolePolicy"
_ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"

_PROPERTIES: dict[str, dict[str, ComparedProperty]] = {
    _ROLE: {
        _TRUST: ComparedProperty(form=normalize_policy),
        "description": ComparedProperty(default=""),
        "forceDetachPolicies": ComparedProperty(default=False, stored=True),
        "maxSessionDuration": ComparedProperty(default=3600),
        "name": ComparedProperty(),
        "path": ComparedProperty(default="/"),
        "permissionsBoundary": ComparedProperty(default=""),
        "tags": ComparedProperty(default={}),
    },
    _ROLE_POLICY: {
        "name": ComparedProperty(),
        "policy": ComparedProperty(form=normalize_policy),
        "role": ComparedProperty(),
    },
}
"""Kinds by type token. A kind that is not here is compared by the provider."""


def may_differ(
    resources: Sequence[StackResource], account: AwsAccountReader, session: ScanSession
) -> list[StackResource]:
    """Return the resources that the provider must compare: all that are not surely as declared.

    Args:
        resources: Resources of IAM.
        account: The account.
        session: The run.

    Raises:
        AccountUnreachableError: IAM does not respond.
    """
    try:
        with explain_errors("IAM"):
            live_by_key = dict(_list_all(account))
    except ReadRefusedError:
        lives = session.map(lambda resource: _read(resource.state, account), resources)
    else:
        lives = (live_by_key.get((resource.state.type, resource.state.id)) for resource in resources)
    return [resource for resource, live in zip(resources, lives, strict=True) if not _is_same(resource, live)]


def _is_same(resource: StackResource, live: Mapping[str, Any] | None) -> bool:
    state = resource.state
    properties = _PROPERTIES.get(state.type)
    if properties is None or live is None:
        return False
    proven = frozenset({_TRUST}) if state.type == _ROLE and _is_trust_proven(resource, live) else frozenset[str]()
    return is_as_declared(state, properties, live, proven=proven)


def _is_trust_proven(resource: StackResource, live: Mapping[str, Any]) -> bool:
    """Return whether a live trust policy has the fingerprint that the last update recorded.

    The policy itself is a secret, whose decryption takes 0.4 s per stack.
    """
    fingerprint = resource.parent.outputs.get(TRUST_FINGERPRINT) if resource.parent else None
    return isinstance(fingerprint, str) and fingerprint == fingerprint_policy(live.get(_TRUST), str(live.get("name")))


def _list_all(account: AwsAccountReader) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """Yield type, id and live properties of all roles and their inline policies."""
    iam = account.client("iam")
    # Each of the two lists lacks properties of the other list.
    pages = iam.get_paginator("list_roles").paginate()
    roles = {str(role["RoleName"]): as_mapping(role) for page in pages for role in as_list(page.get("Roles"))}
    for detail in account.list_role_details():
        name = str(detail["RoleName"])
        yield (_ROLE, name), _to_live_role({**roles.get(name, {}), **detail})
        for policy in map(as_mapping, as_list(detail.get("RolePolicyList"))):
            live_policy = {"name": policy["PolicyName"], "policy": policy["PolicyDocument"], "role": name}
            yield (_ROLE_POLICY, f"{name}:{policy['PolicyName']}"), live_policy


def _read(state: ResourceState, account: AwsAccountReader) -> Mapping[str, Any] | None:
    """Return the live properties of one object; None if it does not exist or cannot be read."""
    iam = account.client("iam")
    try:
        with explain_errors("IAM"):
            if state.type == _ROLE:
                return _to_live_role(as_mapping(iam.get_role(RoleName=state.id)["Role"]))
            if state.type == _ROLE_POLICY:
                role, _, name = state.id.partition(":")
                policy = iam.get_role_policy(RoleName=role, PolicyName=name)
                return {"name": name, "policy": policy["PolicyDocument"], "role": role}
    except ReadRefusedError:
        return None
    return None


def _to_live_role(role: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        _TRUST: role.get("AssumeRolePolicyDocument"),
        "description": role.get("Description") or "",
        "maxSessionDuration": role.get("MaxSessionDuration") or 3600,
        "name": role.get("RoleName"),
        "path": role.get("Path"),
        "permissionsBoundary": as_mapping(role.get("PermissionsBoundary")).get("PermissionsBoundaryArn", ""),
        "tags": to_tags(role.get("Tags")),
    }
