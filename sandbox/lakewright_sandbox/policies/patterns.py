"""Match patterns of policies against values of requests: wildcards, policy variables and ARNs.

Rules from the IAM User Guide, "IAM JSON policy elements: Resource", "... Action" and "... Variables and tags".
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lakewright_sandbox.errors import SandboxError

# Values of a request by lower-case condition key; absent keys are left out.
Context = Mapping[str, Sequence[str]]

# ${key} or ${key, 'default'}
_VARIABLE = re.compile(r"\$\{\s*([^},]+?)\s*(?:,\s*'([^']*)'\s*)?\}")
_LITERAL_VARIABLES = {"*", "?", "$"}
_ARN_FIELDS = 6


class AbsentVariableError(SandboxError):
    """The pattern has a variable without default that the request lacks; it matches nothing."""


@lru_cache(maxsize=4096)
def _regex(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    translated = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile(translated, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def matches(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    """Return whether a value matches a pattern: `*` is any number of characters, `?` exactly one."""
    return _regex(pattern, ignore_case=ignore_case).fullmatch(value) is not None


def action_matches(pattern: str, action: str) -> bool:
    """Return whether an action matches a pattern, ignoring case; `*` alone may stand for the service's name."""
    if pattern == "*":
        return True
    pattern_service, _, pattern_name = pattern.partition(":")
    service, _, name = action.partition(":")
    return pattern_service.lower() == service.lower() and matches(pattern_name, name, ignore_case=True)


def _split(pattern: str, context: Context | None) -> list[tuple[str, bool]]:
    """Return the pattern as pieces of text, each with whether its wildcards count; a variable's value has none."""
    if context is None or "${" not in pattern:
        return [(pattern, True)]
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in _VARIABLE.finditer(pattern):
        pieces.append((pattern[end : match.start()], True))
        end = match.end()
        name, default = match.group(1), match.group(2)
        if name in _LITERAL_VARIABLES:
            pieces.append((name, False))
            continue
        values = context.get(name.lower(), ())
        # A variable stands for a single value; keys with several cannot be used as one.
        if len(values) == 1:
            pieces.append((values[0], False))
        elif default is not None:
            pieces.append((default, False))
        else:
            raise AbsentVariableError(name)
    pieces.append((pattern[end:], True))
    return pieces


def variable_pattern_matches(pattern: str, value: str, context: Context | None, *, ignore_case: bool = False) -> bool:
    """Return whether a value matches a pattern whose policy variables are replaced; without context there are none."""
    try:
        pieces = _split(pattern, context)
    except AbsentVariableError:
        return False
    if len(pieces) == 1:
        return matches(pattern, value, ignore_case=ignore_case)
    translated = "".join(_regex(text, ignore_case=False).pattern if wild else re.escape(text) for text, wild in pieces)
    return re.fullmatch(translated, value, re.DOTALL | (re.IGNORECASE if ignore_case else 0)) is not None


def expand(pattern: str, context: Context | None) -> str | None:
    """Return the pattern with variables replaced and wildcards kept as text, None if a variable is absent."""
    try:
        return "".join(text for text, _ in _split(pattern, context))
    except AbsentVariableError:
        return None


def arn_matches(pattern: str, value: str, context: Context | None = None) -> bool:
    """Return whether an ARN matches a pattern, field by field; missing fields of a pattern count as `*`, as in AWS.

    A wildcard does not match across colons, except in the last field, which may contain colons.
    """
    if pattern == "*":
        return True
    fields = _split_arn(pattern)
    fields += ["*"] * (_ARN_FIELDS - len(fields))
    values = value.split(":", _ARN_FIELDS - 1)
    if len(values) < _ARN_FIELDS:
        return variable_pattern_matches(pattern, value, context)
    return all(variable_pattern_matches(field, part, context) for field, part in zip(fields, values, strict=True))


def _split_arn(pattern: str) -> list[str]:
    """Split at colons, but not at colons inside `${...}`: `${aws:username}` is one piece of a field."""
    fields: list[str] = []
    depth, start = 0, 0
    for position, character in enumerate(pattern):
        if pattern.startswith("${", position):
            depth += 1
        elif character == "}" and depth:
            depth -= 1
        elif character == ":" and not depth and len(fields) < _ARN_FIELDS - 1:
            fields.append(pattern[start:position])
            start = position + 1
    return [*fields, pattern[start:]]
