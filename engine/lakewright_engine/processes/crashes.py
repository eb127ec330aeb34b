"""Describe the end of a provider in one sentence instead of a stack trace."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable

_GO_CRASH = re.compile(r"^(?:panic|fatal error): (?P<reason>.+)")
_GO_NESTED = re.compile(r"(?: \[recovered(?:, repanicked)?\])+$")
_PYTHON_TRACEBACK = "Traceback (most recent call last):"


def describe_exit(name: str, code: int, output: Iterable[str]) -> str:
    """Return one sentence about a provider that ended before the engine stopped it.

    Args:
        name: The name of the provider in messages, such as `provider 'aws'`.
        code: Its exit code; minus the signal's number for a signal.
        output: Lines of its standard error, oldest first.
    """
    lines = [line for line in output if line.strip()]
    if code < 0:
        return f"{name}'s process was ended by signal {-code} ({signal.Signals(-code).name})"
    if reason := find_crash(lines):
        return f"{name} crashed: {reason} (exit code {code})"
    last = f", after it printed: {lines[-1].strip()}" if lines else ""
    return f"{name}'s process ended with exit code {code} before the engine was done with it{last}"


def find_crash(lines: list[str]) -> str:
    """Return the reason in a Go panic or a Python traceback; empty if there is neither."""
    for line in lines:
        if match := _GO_CRASH.match(line):
            return _GO_NESTED.sub("", match["reason"].strip())
    if _PYTHON_TRACEBACK in lines:
        after = lines[lines.index(_PYTHON_TRACEBACK) + 1 :]
        return next((line for line in after if not line.startswith(" ")), "")
    return ""
