"""The exceptions of `lakewright ci`.

CiError
  DocumentError    the input is not a document of `fleet preview --json` or `drift --json`
  SettingError     a variable or setting of the CI system is missing or wrong
  PostError        a server did not take what was posted
    ForbiddenError   the token may not do it, as that of a pull request from a fork
    MissingError     it does not exist, or the token may not see it
  PublishError     gauges or Events could not be published
"""

from __future__ import annotations


class CiError(Exception):
    """The base of the errors of `lakewright ci`."""


class DocumentError(CiError):
    """The input is not a document that this version reads. The message says where it was expected."""


class SettingError(CiError):
    """A variable or setting of the CI system is missing or wrong."""

    exit_code = 2


class PostError(CiError):
    """A server did not take what was posted. The message has no token and no secret URL."""


class ForbiddenError(PostError):
    """The token may not do this."""


class MissingError(PostError):
    """It does not exist, or the token may not see it."""


class PublishError(CiError):
    """Gauges or Events could not be published. The message names where, and the answer."""
