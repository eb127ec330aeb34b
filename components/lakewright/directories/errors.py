"""Errors of directories. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class DirectoryError(LakewrightError):
    """A group cannot be read. The message contains no secret."""


class GroupNotFoundError(DirectoryError):
    """No group has that name."""


class AmbiguousGroupError(DirectoryError):
    """Several groups have that name."""


class DirectoryRefusedError(DirectoryError):
    """The client may not read groups, or its credential is not accepted."""


class DirectoryUnavailableError(DirectoryError):
    """The directory does not respond, or its response is not as expected."""
