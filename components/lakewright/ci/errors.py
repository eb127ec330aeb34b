"""The exceptions of `lakewright ci`. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class CiError(LakewrightError):
    """The base of the errors of `lakewright ci`."""


class DocumentError(CiError):
    """The input is not a document that this version reads. The message says where it was expected."""


class SettingError(CiError):
    """A variable or setting of the CI system is missing or wrong."""

    exit_code = 2


class PostError(CiError):
    """A server refused a post. The message has no token and no secret URL."""


class ForbiddenPostError(PostError):
    """The token may not do this."""


class MissingTargetError(PostError):
    """The target does not exist, or the token may not see it."""


class PublishError(CiError):
    """Gauges or Events could not be published. The message names the target and the response."""
