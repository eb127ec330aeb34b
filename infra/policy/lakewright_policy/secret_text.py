"""Secrets in command lines and values. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

SENSITIVE_WORDS = (
    "passwords?|passwd|passphrase|secrets?|tokens?|credentials?|private[-_.]?key|access[-_.]?key|api[-_.]?key"
)
"""Words in the name of a secret, in any case."""
_NAME = rf"[\w.-]*(?:{SENSITIVE_WORDS})(?:[-_.](?:access[-_.]?key|key|id|value))?"
"""A name of a secret. `token-file` and `token_url` end in another word, and are none."""
_ASSIGNMENT = re.compile(rf"{_NAME}\s*[=:]\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&|,]+)", re.IGNORECASE)
"""`--password=x`, `-Dstore.secret-key=x`, `export TOKEN=x`."""
_OPTION = re.compile(rf"-{{1,2}}{_NAME}", re.IGNORECASE)
_REFERENCE = re.compile(
    r"(file:|env:|vault:|aws-secretsmanager:|config:|/|\.{1,2}/|\$).*|true|false|none|null|\d{1,5}", re.IGNORECASE
)
"""A value that names where a secret is, a switch, or a count. Kubernetes and shells replace `$(NAME)` and `$NAME`."""
_SECRET_TEXTS = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+"
    r"|(?i:\bauthorization\s*[:=]\s*(?:bearer|basic)\s+(?!\$)\S+)"
    r"|\b[a-z][a-z0-9+.-]*://[^\s:/@]*:(?!\$)[^\s/@]+@"
)
"""Key IDs of AWS, private keys, JSON Web Tokens, headers of authorization, and URLs with a password."""


def has_secret_text(text: str) -> bool:
    """Return whether a text contains what is a secret wherever it stands."""
    return _SECRET_TEXTS.search(text) is not None


def has_secret_argument(arguments: Sequence[str]) -> bool:
    """Return whether a command line contains a secret."""
    if any(has_secret_text(argument) or any(map(_is_secret, _ASSIGNMENT.finditer(argument))) for argument in arguments):
        return True
    return any(
        _OPTION.fullmatch(option) and value and not value.startswith("-") and not _REFERENCE.fullmatch(value)
        for option, value in pairwise(arguments)
    )


def _is_secret(assignment: re.Match[str]) -> bool:
    value = assignment["value"].strip("\"'")
    return bool(value) and not _REFERENCE.fullmatch(value)
