"""Parse policy documents from JSON to statements, and refuse documents that AWS refuses as malformed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.policies.callers import Principals
from lakewright_sandbox.policies.conditions import Condition, UnknownOperatorError, all_hold, parse_condition
from lakewright_sandbox.policies.patterns import Context, action_matches, arn_matches
from lakewright_sandbox.typed.json_values import is_array, is_object

PolicyKind = Literal["identity", "resource", "trust"]

_VERSIONS = ("2008-10-17", "2012-10-17")
_STATEMENT_KEYS = {
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action"),
    *("NotAction", "Resource", "NotResource", "Condition"),
}


class MalformedPolicyError(SandboxError, ValueError):
    """The document is not a policy; the message names the faulty part."""


@dataclass(frozen=True)
class Statement:
    """One statement, prepared for evaluation."""

    effect: Literal["Allow", "Deny"]
    actions: tuple[str, ...]
    not_action: bool
    resources: tuple[str, ...]
    not_resource: bool
    principals: Principals | None
    conditions: tuple[Condition, ...]
    variables: bool

    def covers(self, action: str, resource: str, context: Context) -> bool:
        """Return whether it applies to an action on a resource under these conditions, for any caller."""
        variable_context = context if self.variables else None
        return (
            any(action_matches(pattern, action) for pattern in self.actions) != self.not_action
            and any(arn_matches(pattern, resource, variable_context) for pattern in self.resources) != self.not_resource
            and all_hold(self.conditions, context, variables=self.variables)
        )


@dataclass(frozen=True)
class Policy:
    """A parsed policy."""

    statements: tuple[Statement, ...]


@lru_cache(maxsize=1024)
def parse(document: str, kind: PolicyKind) -> Policy:
    """Return the parsed policy.

    Args:
        document: JSON text.
        kind: `identity` (session policies and boundaries too), `resource` or `trust`.

    Raises:
        MalformedPolicyError: The document is not a policy of that kind.
    """
    try:
        content = json.loads(document)
    except json.JSONDecodeError as error:
        raise MalformedPolicyError(f"Syntax errors in policy: {error}.") from None
    if not is_object(content):
        raise MalformedPolicyError("The policy must be a JSON object.")
    unknown = set(content) - {"Version", "Id", "Statement"}
    if unknown:
        raise MalformedPolicyError(f"Unknown element {sorted(unknown)[0]} in the policy.")
    version = content.get("Version", _VERSIONS[0])
    if version not in _VERSIONS:
        raise MalformedPolicyError(f"Version must be one of {', '.join(_VERSIONS)}; found {version!r}.")
    statements = content.get("Statement")
    if is_object(statements):
        statements = [statements]
    if not is_array(statements) or not statements:
        raise MalformedPolicyError("The policy needs a Statement.")
    return Policy(tuple(_statement(item, kind, variables=version == _VERSIONS[1]) for item in statements))


def _statement(item: Any, kind: PolicyKind, *, variables: bool) -> Statement:
    if not is_object(item):
        raise MalformedPolicyError("A statement must be a JSON object.")
    unknown = set(item) - _STATEMENT_KEYS
    if unknown:
        raise MalformedPolicyError(f"Unknown element {sorted(unknown)[0]} in a statement.")
    effect = item.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise MalformedPolicyError(f"Effect must be Allow or Deny; found {effect!r}.")
    not_action, actions = _either(item, "Action")
    for action in actions:
        if action != "*" and ":" not in action:
            raise MalformedPolicyError(f"Actions must be prefixed with a vendor: {action!r}.")
    if kind == "trust":
        if "Resource" in item or "NotResource" in item:
            raise MalformedPolicyError("Has prohibited field Resource.")
        not_resource, resources = False, ("*",)
    else:
        not_resource, resources = _either(item, "Resource")
        for resource in resources:
            if resource != "*" and not resource.startswith("arn:"):
                raise MalformedPolicyError(f'Resource {resource!r} must be in ARN format or "*".')
    return Statement(
        effect=effect,
        actions=actions,
        not_action=not_action,
        resources=resources,
        not_resource=not_resource,
        principals=_principals(item, kind),
        conditions=_conditions(item.get("Condition", {})),
        variables=variables,
    )


def _either(item: Mapping[str, Any], name: str) -> tuple[bool, tuple[str, ...]]:
    present = [key for key in (name, f"Not{name}") if key in item]
    if len(present) != 1:
        raise MalformedPolicyError(f"A statement needs either {name} or Not{name}.")
    values = _strings(item[present[0]], present[0])
    if not values:
        raise MalformedPolicyError(f"{present[0]} must not be empty.")
    return present[0] != name, values


def _principals(item: Mapping[str, Any], kind: PolicyKind) -> Principals | None:
    present = [key for key in ("Principal", "NotPrincipal") if key in item]
    if kind == "identity":
        if present:
            raise MalformedPolicyError(f"Policy document should not specify a {present[0].lower()}.")
        return None
    if len(present) != 1:
        raise MalformedPolicyError("Missing required field Principal.")
    value = item[present[0]]
    negated = present[0] == "NotPrincipal"
    if value == "*":
        return Principals(("*",), negated=negated)
    if not is_object(value) or not value:
        raise MalformedPolicyError(f'{present[0]} must be "*" or an object such as {{"AWS": ...}}.')
    unknown = set(value) - {"AWS", "Service", "Federated", "CanonicalUser"}
    if unknown:
        raise MalformedPolicyError(f'Invalid principal in policy: "{sorted(unknown)[0]}".')
    aws = _strings(value.get("AWS", []), "AWS")
    for entry in aws:
        # `*` alone is the only wildcard: AWS refuses `arn:aws:iam::1:role/*`.
        if entry != "*" and ("*" in entry or "?" in entry):
            raise MalformedPolicyError(f'Invalid principal in policy: "AWS":"{entry}".')
    services, federated = (_strings(value.get(kind, []), kind) for kind in ("Service", "Federated"))
    for entry in (*services, *federated):
        if "*" in entry or "?" in entry:
            raise MalformedPolicyError(f'Invalid principal in policy: "{entry}".')
    return Principals(aws, services, federated, negated)


def _conditions(block: Any) -> tuple[Condition, ...]:
    if not is_object(block):
        raise MalformedPolicyError("Condition must be an object of operators.")
    conditions: list[Condition] = []
    for operator, keys in block.items():
        if not is_object(keys):
            raise MalformedPolicyError(f"Condition {operator} must be an object of keys.")
        for key, values in keys.items():
            try:
                conditions.append(parse_condition(operator, key, _strings(values, key)))
            except UnknownOperatorError:
                raise MalformedPolicyError(f"Invalid Condition type: {operator}.") from None
    return tuple(conditions)


def _strings(value: Any, element: str) -> tuple[str, ...]:
    items: Sequence[Any] = value if is_array(value) else [value]
    texts: list[str] = []
    for item in items:
        if isinstance(item, bool):
            texts.append(str(item).lower())
        elif isinstance(item, str | int | float):
            texts.append(str(item))
        else:
            raise MalformedPolicyError(f"{element} must be a string or a list of strings.")
    return tuple(texts)
