"""Exceptions of loading an environment."""

from lakewright.errors import LakewrightError


class PlatformUnreadableError(LakewrightError):
    """The output of the platform stack that an environment names cannot be read."""

    exit_code = 2
