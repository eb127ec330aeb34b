"""Rules on who gets access: trust policies of roles, policies of keys, and attached policies of AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakewright_policy.conditions import limits_callers, names_user, requires_literal
from lakewright_policy.policy_documents import AllowingStatement, find_allowing_statements
from lakewright_policy.resource import CheckedResource, ResourceRule, as_mapping, items

_ROLE = re.compile(r"aws:iam/role:Role")
_KEY = re.compile(r"aws:kms/(key:Key|keyPolicy:KeyPolicy|externalKey:ExternalKey|replicaKey:ReplicaKey)")
_ATTACHMENT = re.compile(
    r"aws:iam/((role|user|group)?[pP]olicyAttachment:(Role|User|Group)?PolicyAttachment"
    r"|(role|user|group)PolicyAttachmentsExclusive:(Role|User|Group)PolicyAttachmentsExclusive)"
)
_ADMINISTRATION = re.compile(
    r"arn:[^:]*:iam::aws:policy/(.*/)?(Administrator.*|.*Admin(istrator)?|PowerUser.*|.*FullAccess.*|ReadOnlyAccess"
    r"|DataScientist|AWSLambdaExecute|AWSDataPipelineRole|AmazonEC2Rolefor(DataPipelineRole|SSM)|AmazonS3.*"
    r"|AmazonElasticMapReduce(forEC2)?Role|AWSBackupServiceRolePolicyForS3.*)",
    re.IGNORECASE,
)
"""Policies of AWS that reach beyond one prefix: administration, whole services, and S3 as a whole."""
_ACCOUNT = re.compile(r"arn:[^:]*:iam::\d+:root|\d{12}")
_ACCOUNT_KEYS = r"sts:externalid|aws:principaltag/.+"
"""Keys that limit the callers of an account, whose administrators set the tags."""
_ASSUMING = ("assumerole", "assumerolewithwebidentity", "assumerolewithsaml")


def _open_trust(resource: CheckedResource) -> Iterator[str]:
    if not _ROLE.fullmatch(resource.type):
        for statement in find_allowing_statements(resource.props.get("policy")):
            if statement.is_for_everyone and not limits_callers(statement.conditions):
                yield f"statement {statement.label} of the key's policy allows everyone: name the principals"
        return
    for statement in find_allowing_statements(resource.props.get("assumeRolePolicy")):
        if _allows_assuming(statement) and (reason := _open_reason(statement)):
            yield f"statement {statement.label} of the trust policy lets {reason}"


def _allows_assuming(statement: AllowingStatement) -> bool:
    if "NotAction" in statement.document:
        return True
    patterns = [str(action).lower() for action in items(statement.document.get("Action"))]
    return any(statement.matches(pattern, f"sts:{action}") for pattern in patterns for action in _ASSUMING)


def _open_reason(statement: AllowingStatement) -> str | None:
    conditions = statement.conditions
    if statement.is_for_everyone:
        return None if limits_callers(conditions) else "everyone assume the role: name the principal"
    principals = as_mapping(statement.document.get("Principal"))
    if "Federated" in principals and not names_user(conditions):
        return (
            "all users of an identity provider assume the role: require `sub` with `StringEquals` and its literal value"
        )
    accounts = [str(name) for name in items(principals.get("AWS")) if _ACCOUNT.fullmatch(str(name))]
    if accounts and not limits_callers(conditions) and not requires_literal(conditions, _ACCOUNT_KEYS):
        return (
            f"the whole account {accounts[0]} assume the role: name a role, or require `sts:ExternalId` with"
            " `StringEquals` and its literal value"
        )
    return None


def _administration(resource: CheckedResource) -> Iterator[str]:
    names = [
        name for key in ("policyArn", "policyArns", "managedPolicyArns") for name in items(resource.props.get(key))
    ]
    for name in map(str, names):
        if _ADMINISTRATION.fullmatch(name):
            yield f"attaches {name}, which reaches beyond a key prefix: declare a policy with the needed actions"


OPEN_TRUST = ResourceRule(
    "open-trust",
    "Roles and keys name the principals that may use them.",
    re.compile(f"{_ROLE.pattern}|{_KEY.pattern}"),
    _open_trust,
)
ADMINISTRATOR_POLICY = ResourceRule(
    "administrator-policy",
    "No policy of AWS for administration or a whole service is attached.",
    re.compile(f"{_ATTACHMENT.pattern}|{_ROLE.pattern}"),
    _administration,
)
