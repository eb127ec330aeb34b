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
