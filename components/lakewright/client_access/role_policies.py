"""Evaluate the identity policies of a role for one request. Pure functions.

Source: AWS, "Policy evaluation logic": an explicit deny wins, then an allow is needed. Conditions on `s3:prefix` are
evaluated, and conditions on the time and on TLS if the request has them. Each function says how other conditions count.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

_LIKE = {"stringlike", "arnlike"}
_EQUALS = {"stringequals", "stringequalsignorecase"}
_DATES: Mapping[str, Callable[[datetime, datetime], bool]] = {
    "datelessthan": operator.lt,
    "datelessthanequals": operator.le,
    "dategreaterthan": operator.gt,
    "dategreaterthanequals": operator.ge,
}
_PERMISSIVE, _STRICT = {"Allow": True, "Deny": False}, {"Allow": False, "Deny": True}
"""Whether a condition that cannot be decided counts as met, by the effect of its statement."""
_ASSUMING = ("sts:AssumeRole", "sts:AssumeRoleWithWebIdentity", "sts:AssumeRoleWithSAML")


@dataclass(frozen=True)
class PolicyRequest:
    """A request that a role could send."""

    action: str
    resource: str
    prefix: str | None = None
    """Prefix of a listing."""
    time: datetime | None = None
    """Time of the request. None: conditions on it are not decided."""
    uses_tls: bool | None = None
    """Whether the request is encrypted. None: conditions on it are not decided."""


def find_allowing_statement(policies: Iterable[Mapping[str, Any]], request: PolicyRequest) -> str | None:
    """Return the name of the statement that allows a request; None if it is denied.

    The result errs towards "allowed": other conditions of an Allow count as met, other conditions of a Deny as not met.
    """
    return _find_statement(policies, request, _PERMISSIVE)


def find_unconditional_statement(policies: Iterable[Mapping[str, Any]], request: PolicyRequest) -> str | None:
    """Return the name of the statement that allows a request over TLS; None if it may be denied.

    The result errs towards "denied": other conditions of an Allow count as not met, other conditions of a Deny as met.
    """
    return _find_statement(policies, replace(request, uses_tls=True), _STRICT)


def _find_statement(
    policies: Iterable[Mapping[str, Any]], request: PolicyRequest, undecided: Mapping[str, bool]
) -> str | None:
    allowed: str | None = None
    for statement in _list_statements(policies):
        if not _matches(statement, request):
            continue
        effect = str(statement.get("Effect"))
        if not all(_evaluate_conditions(statement, request, undecided=undecided.get(effect, False))):
            continue
        if effect == "Deny":
            return None
        if effect == "Allow":
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
        return not _matches_any(_list_texts(statement["NotAction"]), action, ignore_case=True)
    return _matches_any(_list_texts(statement.get("Action")), action, ignore_case=True)


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
        is_action = name == "Action"
        if f"Not{name}" in statement:
            if _matches_any(_list_texts(statement[f"Not{name}"]), value, ignore_case=is_action):
                return False
        elif not _matches_any(_list_texts(statement.get(name)), value, ignore_case=is_action):
            return False
    return True


def _evaluate_conditions(statement: Mapping[str, Any], request: PolicyRequest, *, undecided: bool) -> Iterator[bool]:
    """Yield whether each condition is met, and `undecided` for conditions that cannot be decided."""
    for name, block in as_mapping(statement.get("Condition")).items():
        for key, value in as_mapping(block).items():
            is_met = _evaluate_condition(name.lower(), key.lower(), _list_texts(value), request)
            yield undecided if is_met is None else is_met


def _evaluate_condition(name: str, key: str, values: list[str], request: PolicyRequest) -> bool | None:
    """Return whether a condition is met; None if this cannot be decided."""
    kind = name.removesuffix("ifexists")
    if key == "s3:prefix" and kind in _LIKE | _EQUALS:
        if request.prefix is None:
            return name != kind
        return _matches_any(values, request.prefix) if kind in _LIKE else request.prefix in values
    if key == "aws:currenttime" and kind in _DATES and request.time is not None:
        times = [_parse_time(value) for value in values]
        return None if None in times else any(_DATES[kind](request.time, time) for time in times if time)
    if key == "aws:securetransport" and kind == "bool" and request.uses_tls is not None:
        return str(request.uses_tls).lower() in [value.lower() for value in values]
    return None


def _parse_time(text: str) -> datetime | None:
    """Return a time of a policy: ISO 8601, UTC without a zone, or seconds since 1970. None if it is neither."""
    try:
        if text.isdigit():
            return datetime.fromtimestamp(int(text), UTC)
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _list_texts(value: object) -> list[str]:
    parts = as_list(value) or ([] if value is None or isinstance(value, list) else [value])
    return [str(part).lower() if isinstance(part, bool) else str(part) for part in parts]


def _matches_any(patterns: Iterable[str], text: str, *, ignore_case: bool = False) -> bool:
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return any(
        re.fullmatch("".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in pattern), text, flags)
        for pattern in patterns
    )
