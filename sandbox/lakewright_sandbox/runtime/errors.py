"""Errors of the sandbox itself.

SandboxError
├── CredentialsFileError    the credentials file exists but cannot be used
├── SandboxStateError       sandbox.json cannot be read
├── SandboxMissingError     there is no sandbox in that directory
├── SandboxOptionsError     the requested options contradict each other
└── ProcessFailedError      a process of the sandbox did not start or stop
"""


class SandboxError(Exception):
    """Base of the sandbox's errors. The message names the problem and what to do."""


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
