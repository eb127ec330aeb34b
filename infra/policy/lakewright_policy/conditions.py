"""Conditions of policy statements: which of them limit the callers. Pure functions.

Source: AWS, "Blocking public access to your Amazon S3 storage", the meaning of public: only fixed values of keys about
the caller count, without wildcards and policy variables. Other conditions may hold for everyone.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from lakewright_policy.resource import UNKNOWN, as_mapping, items

_CALLER_KEYS = frozenset(
    {
        "aws:principalarn",
        "aws:principalaccount",
        "aws:principalorgid",
        "aws:principalorgpaths",
        "aws:sourceaccount",
        "aws:sourcearn",
        "aws:sourceorgid",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "aws:userid",
        "s3:dataaccesspointaccount",
        "s3:dataaccesspointarn",
    }
)
"""Keys, in lower case, that tell callers apart. Tags and private addresses do not: any account can have them."""
_ADDRESS_KEY = "aws:sourceip"
_EQUALS = frozenset({"stringequals", "stringequalsignorecase", "arnequals"})
_LIKE = frozenset({"stringlike", "arnlike", "arnequals"})
"""`ArnEquals` matches patterns as `ArnLike` does."""
_PROJECT = re.compile(r"[^/]+/[^/]+[:/]")
_SHORTEST_PREFIXES = {4: 8, 6: 32}
"""Bits of the widest range of addresses that limits callers, by the version of IP."""


def limits_callers(conditions: Mapping[str, Any]) -> bool:
    """Return whether one of the conditions fails for callers that nobody named."""
    return any(
        value is UNKNOWN or _is_limiting(operator.lower(), key.lower(), [str(text) for text in items(value)])
        for operator, block in conditions.items()
        for key, value in as_mapping(block).items()
    )


def requires_literal(conditions: Mapping[str, Any], key_pattern: str) -> bool:
    """Return whether a condition requires a fixed value of a key, in lower case, that matches a pattern."""
    return any(
        value is UNKNOWN or (bool(texts := items(value)) and all(is_literal(str(text)) for text in texts))
        for operator, block in conditions.items()
        if operator.lower() == "stringequals"
        for key, value in as_mapping(block).items()
        if re.fullmatch(key_pattern, key.lower())
    )


def names_user(conditions: Mapping[str, Any]) -> bool:
    """Return whether a condition limits the users of an identity provider by their subject (`sub`).

    A pattern counts if its literal beginning names a group and a project, such as `repo:acme/lake:*`.
    """
    return requires_literal(conditions, ".*:sub") or any(
        bool(texts := items(value)) and all(_PROJECT.match(re.split(r"[*?$]", str(text))[0]) for text in texts)
        for operator, block in conditions.items()
        if operator.lower() == "stringlike"
        for key, value in as_mapping(block).items()
        if key.lower().endswith(":sub")
    )


def is_literal(text: str) -> bool:
    """Return whether a value has no wildcard and no policy variable."""
    return bool(text) and not any(sign in text for sign in ("*", "?", "${"))


def _is_limiting(operator: str, key: str, values: list[str]) -> bool:
    operator = operator.removeprefix("foranyvalue:")
    if not values:
        return False
    if key == _ADDRESS_KEY:
        return operator == "ipaddress" and all(map(_is_narrow_range, values))
    if key not in _CALLER_KEYS:
        return False
    if operator in _EQUALS and all(map(is_literal, values)):
        return True
    return operator in _LIKE and all(map(_names_account, values))


def _is_narrow_range(value: str) -> bool:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return network.prefixlen >= _SHORTEST_PREFIXES[network.version]


def _names_account(value: str) -> bool:
    """Return whether a pattern is an ARN whose parts up to the account are literal."""
    parts = value.split(":", 5)
    return len(parts) == 6 and all(is_literal(part) for part in (parts[0], parts[1], parts[2], parts[4]))
