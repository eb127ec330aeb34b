"""Rules on IAM policy documents: no wildcard action, no bare `*`, no objects of a whole bucket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, items, mapping

_POLICIES = re.compile(r"aws:iam/(role|user|group)?[pP]olicy:(Role|User|Group)?Policy|aws:s3/bucketPolicy:BucketPolicy")
_ROLE = re.compile(r"aws:iam/role:Role")
_WHOLE_BUCKET = re.compile(r"arn:[^:]*:s3:::[^/]*(/\**|\*)|arn:(\*|[^:]*:(\*|s3:\*))")
"""`arn:aws:s3:::BUCKET/*`: all objects of a bucket, or of all buckets. So does `BUCKET*`: `*` matches slashes, too."""


@dataclass(frozen=True)
class AllowingStatement:
    """A statement of a policy that allows something."""

    label: str
    """Its `Sid`, else its position."""
    document: Mapping[str, Any]

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Conditions of the statement."""
        return mapping(self.document.get("Condition"))

    @property
    def is_for_everyone(self) -> bool:
        """Return whether the principal is everyone."""
        principal = self.document.get("Principal")
        return principal == "*" or "*" in items(mapping(principal).get("AWS"))


def allowing_statements(document: object) -> Iterator[AllowingStatement]:
    """Yield the statements of a policy document, text or mapping, that allow something."""
    for position, entry in enumerate(items(_parse(document).get("Statement"))):
        statement = mapping(entry)
        if statement.get("Effect") == "Allow":
            yield AllowingStatement(f"`{statement['Sid']}`" if "Sid" in statement else str(position), statement)


def _parse(document: object) -> Mapping[str, Any]:
    if document is UNKNOWN:
        return {}
    if isinstance(document, str):
        try:
            return mapping(json.loads(document))
        except ValueError:
            return {}
    return mapping(document)


def _documents(resource: CheckedResource) -> Iterator[object]:
    if not _ROLE.fullmatch(resource.type):
        yield resource.props.get("policy")
        return
    yield resource.props.get("assumeRolePolicy")
    for inline in items(resource.props.get("inlinePolicies")):
        yield mapping(inline).get("policy")


def _wildcard_actions(resource: CheckedResource) -> Iterator[str]:
    for document in _documents(resource):
        for statement in allowing_statements(document):
            if found := [action for action in items(statement.document.get("Action")) if "*" in str(action)]:
                yield f"statement {statement.label} allows {', '.join(map(str, found))}: name each action"
            if "NotAction" in statement.document:
                yield f"statement {statement.label} allows all but some actions (`NotAction`): name each action"


def _wide_resources(resource: CheckedResource) -> Iterator[str]:
    for document in _documents(resource):
        for statement in allowing_statements(document):
            for named in map(str, items(statement.document.get("Resource"))):
                if set(named) == {"*"}:
                    yield f"statement {statement.label} allows every resource (`{named}`): name the resources"
                elif _WHOLE_BUCKET.fullmatch(named):
                    yield f"statement {statement.label} allows all objects of a bucket (`{named}`): name a key prefix"
            if "NotResource" in statement.document:
                yield f"statement {statement.label} allows all but some resources (`NotResource`): name the resources"


_TYPES = re.compile(f"{_POLICIES.pattern}|{_ROLE.pattern}")
"""Types with policies. Policies of KMS keys are left out: there, `kms:*` on `*` delegates to the account's IAM."""

WILDCARD_ACTION = ResourceRule(
    "wildcard-action", "Policies allow actions by their full names.", _TYPES, _wildcard_actions
)
WIDE_RESOURCE = ResourceRule(
    "wide-resource", "Policies allow neither every resource nor all objects of a bucket.", _TYPES, _wide_resources
)
