"""Exceptions of loading an environment."""


class PlatformUnreadableError(Exception):
    """The output of the platform stack that an environment names cannot be read."""

    exit_code = 2
