"""Rules on IAM policy documents: no wildcard action, no bare `*`, no objects of a whole bucket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, as_mapping, items

_POLICIES = re.compile(
    r"aws:iam/(role|user|group)?[pP]olicy:(Role|User|Group)?Policy|aws:s3/bucketPolicy:BucketPolicy"
    r"|aws:s3/accessPoint:AccessPoint|aws:s3control/accessPointPolicy:AccessPointPolicy"
)
_ROLE = re.compile(r"aws:iam/role:Role")
_WILDCARD = re.compile(r"[*?]")
_ANY_NAME = re.compile(r"([a-z-]+[/:])?[*?]", re.IGNORECASE)
"""A name that begins with a wildcard, perhaps after its kind: `*`, `role/*`, `key/?*`."""


@dataclass(frozen=True)
class AllowingStatement:
    """A statement of a policy that allows something."""

    label: str
    """Its `Sid`, else its position."""
    document: Mapping[str, Any]

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Conditions of the statement."""
        return as_mapping(self.document.get("Condition"))

    @property
    def is_for_everyone(self) -> bool:
        """Return whether the principal is everyone, or everyone but some (`NotPrincipal`)."""
        if "NotPrincipal" in self.document:
            return True
        principal = self.document.get("Principal")
        names = [principal] if isinstance(principal, str) else items(as_mapping(principal).get("AWS"))
        return any(isinstance(name, str) and _WILDCARD.search(name) is not None for name in names)

    @staticmethod
    def matches(pattern: str, text: str) -> bool:
        """Return whether a pattern of a policy matches a text of the same case."""
        parts = ({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern)
        return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def find_allowing_statements(document: object) -> Iterator[AllowingStatement]:
    """Yield the statements of a policy document, text or mapping, that allow something."""
    for position, entry in enumerate(items(_parse(document).get("Statement"))):
        statement = as_mapping(entry)
        if statement.get("Effect") == "Allow":
            yield AllowingStatement(f"`{statement['Sid']}`" if "Sid" in statement else str(position), statement)


def _parse(document: object) -> Mapping[str, Any]:
    if document is UNKNOWN:
        return {}
    if isinstance(document, str):
        try:
            return as_mapping(json.loads(document))
        except ValueError:
            return {}
    return as_mapping(document)


def _documents(resource: CheckedResource) -> Iterator[object]:
    if not _ROLE.fullmatch(resource.type):
        yield resource.props.get("policy")
        return
    yield resource.props.get("assumeRolePolicy")
    for inline in items(resource.props.get("inlinePolicies")):
        yield as_mapping(inline).get("policy")


def _wildcard_actions(resource: CheckedResource) -> Iterator[str]:
    for document in _documents(resource):
        for statement in find_allowing_statements(document):
            if actions := [
                action for action in items(statement.document.get("Action")) if _WILDCARD.search(str(action))
            ]:
                yield f"statement {statement.label} allows {', '.join(map(str, actions))}: name each action"
            if "NotAction" in statement.document:
                yield f"statement {statement.label} allows all but some actions (`NotAction`): name each action"


def _wide_resources(resource: CheckedResource) -> Iterator[str]:
    for document in _documents(resource):
        for statement in find_allowing_statements(document):
            for pattern in map(str, items(statement.document.get("Resource"))):
                if set(pattern) <= {"*", "?"}:
                    yield f"statement {statement.label} allows every resource (`{pattern}`): name the resources"
                elif _is_whole_bucket(pattern):
                    yield f"statement {statement.label} allows all objects of a bucket (`{pattern}`): name a key prefix"
                elif _is_any_resource(pattern):
                    yield (
                        f"statement {statement.label} allows all resources of a kind (`{pattern}`): name the resources"
                    )
            if "NotResource" in statement.document:
                yield f"statement {statement.label} allows all but some resources (`NotResource`): name the resources"


def _is_whole_bucket(pattern: str) -> bool:
    """Return whether a pattern matches all objects of a bucket, or objects of buckets that it does not name.

    So does `BUCKET*`: wildcards match slashes, too.
    """
    parts = pattern.split(":", 5)
    if len(parts) < 6 or parts[2].lower() != "s3":
        return False
    bucket, slash, key = parts[5].partition("/")
    return _WILDCARD.search(bucket) is not None or (bool(slash) and (not key or _WILDCARD.match(key) is not None))


def _is_any_resource(pattern: str) -> bool:
    """Return whether a pattern matches resources of services or kinds that it does not name."""
    parts = pattern.split(":", 5)
    if any(_WILDCARD.search(part) for part in parts[:3]):
        return True
    if parts[2:3] == ["s3"] and len(parts) == 6:
        return False
    return _ANY_NAME.match(parts[5]) is not None if len(parts) == 6 else _WILDCARD.search(pattern) is not None


_TYPES = re.compile(f"{_POLICIES.pattern}|{_ROLE.pattern}")
"""Types with policies. Policies of KMS keys are left out: there, `kms:*` on `*` delegates to the account's IAM."""

WILDCARD_ACTION = ResourceRule(
    "wildcard-action", "Policies allow actions by their full names.", _TYPES, _wildcard_actions
)
WIDE_RESOURCE = ResourceRule(
    "wide-resource", "Policies allow neither every resource nor all objects of a bucket.", _TYPES, _wide_resources
)
