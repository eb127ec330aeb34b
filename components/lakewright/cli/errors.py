"""The command line's exceptions.

UsageError    the command cannot be carried out as it was given; exit code 2, as the Pulumi CLI's
CliFailed     the Pulumi CLI could not do what it was asked; its exit code
"""

from __future__ import annotations


class UsageError(Exception):
    """Names what is missing from the command line."""

    exit_code = 2


class CliFailed(Exception):  # noqa: N818 - named for what happened
    """What the Pulumi CLI said, and its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def told(error: Exception) -> str:
    """What a person reads: our own errors speak for themselves; of others, the kind is part of what they say."""
    if format_message := getattr(error, "format_message", None):  # the command line's own, of Typer
        return str(format_message())
    if type(error).__module__.partition(".")[0].startswith("lakewright"):
        return str(error)
    return f"{type(error).__name__}: {error} (LAKEWRIGHT_DEBUG=1 shows where)"
