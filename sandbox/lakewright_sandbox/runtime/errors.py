"""Errors of the sandbox itself. `lakewright_sandbox.errors` draws the tree."""

from lakewright_sandbox.errors import SandboxError


class CredentialsFileError(SandboxError):
    """The credentials file exists but lacks a profile or a key."""


class SandboxStateError(SandboxError):
    """The sandbox's state file cannot be read."""


class SandboxMissingError(SandboxError):
    """There is no sandbox in the directory."""


class SandboxOptionsError(SandboxError):
    """The requested options contradict each other."""


class ProcessFailedError(SandboxError):
    """A process of the sandbox ended, did not become healthy in time, or did not stop."""
