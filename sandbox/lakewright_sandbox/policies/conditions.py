"""The Condition element: operators, `...IfExists`, `ForAnyValue:`, `ForAllValues:` and `Null`.

Rules from the IAM User Guide, "IAM JSON policy elements: Condition operators" and "Multivalued context keys". An absent
key does not match; a negated operator requires no match and is therefore true for an absent key.
"""

import base64
import binascii
import ipaddress
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.policies.patterns import Context, arn_matches, expand, variable_pattern_matches

Quantifier = Literal["ForAnyValue", "ForAllValues"]
# (value in the policy, value in the request, the request's context for variables) -> whether they match
Match = Callable[[str, str, Context | None], bool]


class UnknownOperatorError(SandboxError, ValueError):
    """AWS has no such condition operator."""


@dataclass(frozen=True)
class Condition:
    """One operator on one key: `{"StringLike": {"s3:prefix": ["a/*"]}}`."""

    operator: str
    key: str
    values: tuple[str, ...]
    quantifier: Quantifier | None
    if_exists: bool

    def holds(self, context: Context, *, variables: bool) -> bool:
        """Return whether the request satisfies the condition; `variables` enables policy variables."""
        actual = context.get(self.key.lower())
        if self.operator == "null":
            return any((not actual) == (value.lower() == "true") for value in self.values)
        match, negated = _OPERATORS[self.operator]
        variable_context = context if variables else None

        def fits(value: str) -> bool:
            return any(match(expected, value, variable_context) for expected in self.values) != negated

        if not actual:
            # "If the key is not present ... the values do not match"; ForAllValues is true without values.
            if self.quantifier == "ForAnyValue":
                return self.if_exists
            return self.if_exists or self.quantifier == "ForAllValues" or negated
        if self.quantifier == "ForAnyValue":
            return any(map(fits, actual))
        if self.quantifier == "ForAllValues" or negated:
            return all(map(fits, actual))
        return any(map(fits, actual))


def parse_condition(operator: str, key: str, values: Sequence[str]) -> Condition:
    """Return the condition of one entry of a Condition element. Raises UnknownOperatorError."""
    remaining_name = operator
    quantifier: Quantifier | None = None
    for candidate in ("ForAnyValue", "ForAllValues"):
        if remaining_name.lower().startswith(candidate.lower() + ":"):
            quantifier, remaining_name = candidate, remaining_name[len(candidate) + 1 :]
    name = remaining_name.lower()
    if_exists = name.endswith("ifexists")
    name = name.removesuffix("ifexists")
    if name not in _OPERATORS and (name != "null" or if_exists or quantifier):
        raise UnknownOperatorError(operator)
    return Condition(operator=name, key=key, values=tuple(values), quantifier=quantifier, if_exists=if_exists)


def all_hold(conditions: Iterable[Condition], context: Context, *, variables: bool) -> bool:
    """Return whether all conditions of a statement hold; the values of one condition are alternatives."""
    return all(condition.holds(context, variables=variables) for condition in conditions)


def _string_equals(expected: str, value: str, context: Context | None) -> bool:
    return expand(expected, context) == value


def _string_equals_ignoring_case(expected: str, value: str, context: Context | None) -> bool:
    expanded = expand(expected, context)
    return expanded is not None and expanded.lower() == value.lower()


def _string_like(expected: str, value: str, context: Context | None) -> bool:
    return variable_pattern_matches(expected, value, context)


def _arn_like(expected: str, value: str, context: Context | None) -> bool:
    # "*" alone stands for any ARN; a value that is not an ARN never matches an ARN operator.
    return value.count(":") >= 5 and arn_matches(expected, value, context)


def _bool(expected: str, value: str, _context: Context | None) -> bool:
    return expected.lower() == value.lower()


def _ip_address(expected: str, value: str, _context: Context | None) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(expected, strict=False)
    except ValueError:
        return False


def _binary(expected: str, value: str, _context: Context | None) -> bool:
    try:
        return base64.b64decode(expected, validate=True) == base64.b64decode(value, validate=True)
    except binascii.Error:
        return False


def _build_ordered_match(parse: Callable[[str], float], compare: Callable[[float, float], bool]) -> Match:
    def match(expected: str, value: str, _context: Context | None) -> bool:
        try:
            return compare(parse(value), parse(expected))
        except ValueError:
            return False

    return match


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _instant(text: str) -> float:
    """Return the seconds since 1970 of an ISO 8601 date (UTC without a zone) or of a number."""
    try:
        return _number(text)
    except ValueError:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "equals": lambda value, expected: value == expected,
    "lessthan": lambda value, expected: value < expected,
    "lessthanequals": lambda value, expected: value <= expected,
    "greaterthan": lambda value, expected: value > expected,
    "greaterthanequals": lambda value, expected: value >= expected,
}

# comparison by lower-case name, and whether the operator is negated
_OPERATORS: dict[str, tuple[Match, bool]] = {
    "stringequals": (_string_equals, False),
    "stringnotequals": (_string_equals, True),
    "stringequalsignorecase": (_string_equals_ignoring_case, False),
    "stringnotequalsignorecase": (_string_equals_ignoring_case, True),
    "stringlike": (_string_like, False),
    "stringnotlike": (_string_like, True),
    "arnequals": (_arn_like, False),
    "arnlike": (_arn_like, False),
    "arnnotequals": (_arn_like, True),
    "arnnotlike": (_arn_like, True),
    "bool": (_bool, False),
    "ipaddress": (_ip_address, False),
    "notipaddress": (_ip_address, True),
    "binaryequals": (_binary, False),
    "numericnotequals": (_build_ordered_match(_number, _COMPARISONS["equals"]), True),
    "datenotequals": (_build_ordered_match(_instant, _COMPARISONS["equals"]), True),
    **{f"numeric{name}": (_build_ordered_match(_number, compare), False) for name, compare in _COMPARISONS.items()},
    **{f"date{name}": (_build_ordered_match(_instant, compare), False) for name, compare in _COMPARISONS.items()},
}
