"""Exceptions of `lakewright verify`.

VerifyError
+-- IdentityUnavailableError   the credential of a computing unit cannot be obtained here
+-- ProbeFailedError           a step of a probe failed, so that later steps cannot be tried
"""

from __future__ import annotations


class VerifyError(Exception):
    """Base of this package's errors."""


class IdentityUnavailableError(VerifyError):
    """The credential of a computing unit cannot be obtained from here. The message says what to do."""


class ProbeFailedError(VerifyError):
    """A step that must succeed failed. The message has its status code and error type."""
