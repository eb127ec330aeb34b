"""The sandbox's own errors, all of them below `SandboxError`.

SandboxError
├── CredentialsFileError   the credentials file is there but cannot be used
├── SandboxStateError           sandbox.json cannot be read
├── SandboxMissingError          no sandbox in that directory
├── SandboxOptionsError          what was asked for does not go together
└── ProcessFailedError           a process of the sandbox did not come up
"""


class SandboxError(Exception):
    """Something about the sandbox itself; the message names it and what to do."""


class CredentialsFileError(SandboxError):
    """The credentials file is there but has not the profiles it should have."""


class SandboxStateError(SandboxError):
    """The sandbox's state file cannot be read."""


class SandboxMissingError(SandboxError):
    """There is no sandbox in that directory."""


class SandboxOptionsError(SandboxError):
    """What was asked for does not go together."""


class ProcessFailedError(SandboxError):
    """A process of the sandbox ended, or did not become healthy in time."""
