"""Errors of directories.

DirectoryError
├── GroupNotFoundError: no group has that name
├── AmbiguousGroupError: several groups have that name
├── DirectoryRefusedError: the client may not read groups, or its credential is not accepted
└── DirectoryUnavailableError: the directory does not respond, or its response is not as expected
"""

from __future__ import annotations


class DirectoryError(Exception):
    """A group cannot be read. The message contains no secret."""


class GroupNotFoundError(DirectoryError):
    """No group has that name."""


class AmbiguousGroupError(DirectoryError):
    """Several groups have that name."""


class DirectoryRefusedError(DirectoryError):
    """The client may not read groups, or its credential is not accepted."""


class DirectoryUnavailableError(DirectoryError):
    """The directory does not respond, or its response is not as expected."""
