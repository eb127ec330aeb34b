"""Evaluate the identity policies of a role for one request. Pure functions.

Source: AWS, "Policy evaluation logic": an explicit deny wins, then an allow is needed. Conditions on `s3:prefix` are
evaluated. Other conditions of an Allow count as met and other conditions of a Deny as not met, so that the result errs
towards "allowed".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

_LIKE = {"stringlike", "arnlike"}
_EQUALS = {"stringequals", "stringequalsignorecase"}
_ASSUMING = ("sts:AssumeRole", "sts:AssumeRoleWithWebIdentity", "sts:AssumeRoleWithSAML")


@dataclass(frozen=True)
class PolicyRequest:
    """A request that a role could send."""

    action: str
    resource: str
    prefix: str | None = None
    """Prefix of a listing."""


def find_allowing_statement(policies: Iterable[Mapping[str, Any]], request: PolicyRequest) -> str | None:
    """Return the name of the statement that allows a request, None if it is denied."""
    allowed: str | None = None
    for statement in _list_statements(policies):
        if not _matches(statement, request):
            continue
        effect = str(statement.get("Effect"))
        if effect == "Deny" and _holds_condition(statement, request, other_conditions_hold=False):
            return None
        if effect == "Allow" and _holds_condition(statement, request, other_conditions_hold=True):
            allowed = allowed or str(statement.get("Sid") or "a statement without Sid")
    return allowed


def find_open_trust(trust: Mapping[str, Any], principal: str | None = None) -> str | None:
    """Return why a trust policy admits more than one principal with an external ID; None if it does not.

    Args:
        trust: The trust policy.
        principal: ARN of the principal that may assume the role. None: any single principal, which is not known here.
    """
    trusted: set[str] = set()
    for statement in _list_statements([trust]):
        if statement.get("Effect") != "Allow" or not any(_allows_action(statement, action) for action in _ASSUMING):
            continue
        if "NotPrincipal" in statement:
            return "all but some principals may assume it (`NotPrincipal`)"
        principals = _list_principals(statement.get("Principal"))
        if any("*" in name for _, name in principals):
            return "any principal may assume it"
        if foreign := [name for kind, name in principals if kind != "AWS" or principal not in (None, name)]:
            expected = f"; expected {principal} only" if principal else ""
            return f"another principal may assume it: {', '.join(foreign)}{expected}"
        trusted.update(name for _, name in principals)
        if not _requires_external_id(statement):
            names = ", ".join(name for _, name in principals) or "its principals"
            return f"no external ID is required of {names}: expected `StringEquals` with its literal value"
    return f"several principals may assume it: {', '.join(sorted(trusted))}" if len(trusted) > 1 else None


def _allows_action(statement: Mapping[str, Any], action: str) -> bool:
    if "NotAction" in statement:
        return not _matches_any(_list_texts(statement["NotAction"]), action)
    return _matches_any(_list_texts(statement.get("Action")), action)


def _list_principals(value: object) -> list[tuple[str, str]]:
    """Return kind and name of each principal of a statement."""
    if isinstance(value, str):
        return [("AWS", value)]
    return [(str(kind), name) for kind, names in as_mapping(value).items() for name in _list_texts(names)]


def _requires_external_id(statement: Mapping[str, Any]) -> bool:
    """Return whether a condition holds only with a literal external ID.

    Patterns match unchosen IDs (`?*` matches any ID), `...IfExists` and `ForAllValues` hold without one, and a
    policy variable may be the ID of the request itself.
    """
    return any(
        key.lower() == "sts:externalid"
        and bool(texts := _list_texts(value))
        and all(_is_literal(text) for text in texts)
        for operator, block in as_mapping(statement.get("Condition")).items()
        if operator.lower() == "stringequals"
        for key, value in as_mapping(block).items()
    )


def _is_literal(text: str) -> bool:
    return bool(text) and not any(sign in text for sign in ("*", "?", "${"))


def _list_statements(policies: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for policy in policies:
        statements = policy.get("Statement")
        yield from map(as_mapping, as_list(statements) or [statements])


def _matches(statement: Mapping[str, Any], request: PolicyRequest) -> bool:
    for name, value in (("Action", request.action), ("Resource", request.resource)):
        if f"Not{name}" in statement:
            if _matches_any(_list_texts(statement[f"Not{name}"]), value):
                return False
        elif not _matches_any(_list_texts(statement.get(name)), value):
            return False
    return True


def _holds_condition(statement: Mapping[str, Any], request: PolicyRequest, *, other_conditions_hold: bool) -> bool:
    for operator, block in as_mapping(statement.get("Condition")).items():
        for key, value in as_mapping(block).items():
            kind = operator.lower().removesuffix("ifexists")
            if key.lower() != "s3:prefix" or kind not in _LIKE | _EQUALS:
                if not other_conditions_hold:
                    return False
            elif request.prefix is None:
                if not operator.lower().endswith("ifexists"):
                    return False
            elif kind in _LIKE:
                if not _matches_any(_list_texts(value), request.prefix, ignore_case=False):
                    return False
            elif request.prefix not in _list_texts(value):
                return False
    return True


def _list_texts(value: object) -> list[str]:
    return [str(part) for part in as_list(value)] or ([value] if isinstance(value, str) else [])


def _matches_any(patterns: Iterable[str], text: str, *, ignore_case: bool = True) -> bool:
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return any(
        re.fullmatch("".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in pattern), text, flags)
        for pattern in patterns
    )
