"""Wildcards, policy variables and ARNs: how a pattern in a policy is compared with a value of a request.

Rules from the IAM User Guide, "IAM JSON policy elements: Resource", "... Action" and "... Variables and tags".
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

# What is known of a request: lower-case key -> values. An absent key is not in it.
Context = Mapping[str, Sequence[str]]

# ${key} or ${key, 'default'}
_VARIABLE = re.compile(r"\$\{\s*([^},]+?)\s*(?:,\s*'([^']*)'\s*)?\}")
_LITERAL_VARIABLES = {"*", "?", "$"}
_ARN_FIELDS = 6


class AbsentVariableError(Exception):
    """A pattern names a variable that the request does not have and gives no default: it matches nothing."""


@lru_cache(maxsize=4096)
def _regex(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    translated = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile(translated, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def matches(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    """Whether the value is what the pattern says: `*` is any characters or none, `?` exactly one."""
    return _regex(pattern, ignore_case).fullmatch(value) is not None


def action_matches(pattern: str, action: str) -> bool:
    """Actions are compared without regard to case; the service's name takes no wildcard of its own except in `*`."""
    if pattern == "*":
        return True
    pattern_service, _, pattern_name = pattern.partition(":")
    service, _, name = action.partition(":")
    return pattern_service.lower() == service.lower() and matches(pattern_name, name, ignore_case=True)


def _split(pattern: str, context: Context | None) -> list[tuple[str, bool]]:
    """The pattern as pieces (text, whether its wildcards count): what a variable brings in is taken literally."""
    if context is None or "${" not in pattern:
        return [(pattern, True)]
    pieces: list[tuple[str, bool]] = []
    end = 0
    for found in _VARIABLE.finditer(pattern):
        pieces.append((pattern[end : found.start()], True))
        end = found.end()
        name, default = found.group(1), found.group(2)
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
    """As `matches`, after putting the request's values in the place of policy variables. `None`: no variables known."""
    try:
        pieces = _split(pattern, context)
    except AbsentVariableError:
        return False
    if len(pieces) == 1:
        return matches(pattern, value, ignore_case=ignore_case)
    translated = "".join(_regex(text, False).pattern if wild else re.escape(text) for text, wild in pieces)
    return re.fullmatch(translated, value, re.DOTALL | (re.IGNORECASE if ignore_case else 0)) is not None


def expand(pattern: str, context: Context | None) -> str | None:
    """The pattern's text with variables replaced, wildcards not interpreted; None if a variable is absent."""
    try:
        return "".join(text for text, _ in _split(pattern, context))
    except AbsentVariableError:
        return None


def arn_matches(pattern: str, value: str, context: Context | None = None) -> bool:
    """Compares the six fields of an ARN one by one; a shorter pattern is completed with `*`, as AWS completes it.

    Field by field a wildcard cannot swallow a colon, except in the last field, which may hold colons itself.
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
    """Splits at colons, but not at those inside `${...}`: `${aws:username}` is one piece of a field."""
    fields, depth, start = [], 0, 0
    for position, character in enumerate(pattern):
        if pattern.startswith("${", position):
            depth += 1
        elif character == "}" and depth:
            depth -= 1
        elif character == ":" and not depth and len(fields) < _ARN_FIELDS - 1:
            fields.append(pattern[start:position])
            start = position + 1
    return [*fields, pattern[start:]]
