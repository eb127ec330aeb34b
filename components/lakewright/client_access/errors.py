"""Exceptions of `lakewright verify`. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class VerifyError(LakewrightError):
    """Base of this package's errors."""


class IdentityUnavailableError(VerifyError):
    """The credential of a computing unit cannot be obtained from here. The message says what to do."""


class ProbeFailedError(VerifyError):
    """A step that must succeed failed. The message has its status code and error type."""
