"""Errors of the engine.

EngineError
├── UnsupportedFeatureError   a program or option needs something that this engine does not support
├── ProgramError              a mistake in the program: a duplicate name, a bad alias, a missing parent
├── ProtectedResourceError    a protected resource was to be deleted
├── HookError                 a hook failed or is not registered
├── ProjectError              Pulumi.yaml or a stack's configuration is missing, unreadable or invalid
│   └── ProjectNotFoundError  neither a folder nor any folder above it has a Pulumi.yaml
├── StateError                a backend or checkpoint is missing, unreadable or invalid
│   ├── DamagedStateError     a state is truncated, not JSON, or has values of wrong types
│   ├── UnsupportedStateError a state needs something that this engine does not support; also UnsupportedFeatureError
│   ├── StateAccessError      a backend does not respond, denies access, or could not save
│   ├── StateConflictError    another process wrote the state since this process read it
│   ├── StackLockedError      another process is changing the stack
│   └── StackNotFoundError    no stack has that name
├── YamlEditError             a YAML file cannot be edited in place
├── PlanError                 a kept plan is damaged, is for something else, or is no longer valid
├── SecretsError              a passphrase is missing or wrong, or a ciphertext is invalid
└── ProviderError             a provider could not be started or rejected a call
    └── InitializationError   the object exists but did not become healthy

DeploymentStoppedError        the deployment ended while a request was waiting; no EngineError, since code that reports
                              an EngineError as the failure of a resource must let it pass
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright_engine.model.resources import Properties
    from lakewright_engine.model.stack_lock import StackLock


class EngineError(Exception):
    """An error that a user can read and act on. Its message never holds a secret."""

    exit_code = 1
    """The exit code of `lakewright` and of the Pulumi CLI."""


class UnsupportedFeatureError(EngineError):
    """The engine does not support a feature. The message names the feature and an alternative."""


class ProgramError(EngineError):
    """The program requests something impossible."""


class ProtectedResourceError(EngineError):
    """A resource is protected. The message says how to unprotect it."""


class HookError(EngineError):
    """A hook failed or is missing. The message names the hook and its error."""


class ProjectError(EngineError):
    """A project file is invalid. The message says what was expected and what was found."""


class ProjectNotFoundError(ProjectError):
    """There is no project. The message names the folder and the option that sets it."""


class StateError(EngineError):
    """A state is invalid. The message names the stack or file and what to do."""


class DamagedStateError(StateError):
    """A state cannot be read. The message names the stack, the place, and the copy to restore."""


class UnsupportedStateError(UnsupportedFeatureError, StateError):
    """A state needs a feature that this engine does not support. The message names it and an alternative."""


class StateAccessError(StateError):
    """A backend cannot be used. The message names the action, the place and what to do."""


class StateConflictError(StateError):
    """Another process wrote the state since this process read it. The newer state is unchanged."""


class StackLockedError(StateError):
    """A stack is locked. The message names the holder and says how to remove the lock."""

    def __init__(self, message: str, locks: Sequence[StackLock] = ()) -> None:
        """Create an error with the locks of the other processes."""
        super().__init__(message)
        self.locks = tuple(locks)


class StackNotFoundError(StateError):
    """A stack does not exist. The message says how to create it."""

    exit_code = 6


class SecretsError(EngineError):
    """A secret cannot be read. The message names only the stack and the environment variable."""


class ProviderError(EngineError):
    """A provider call failed. The message is that of the provider."""

    def __init__(self, message: str, *, unimplemented: bool = False, ambiguous: bool = False) -> None:
        """Create an error with the provider's message."""
        super().__init__(message)
        self.unimplemented = unimplemented
        self.ambiguous = ambiguous
        """The call may have succeeded: no response came, or the provider does not know."""


class InitializationError(ProviderError):
    """A create, update or read left an object that is not ready, for the `reasons` given."""

    def __init__(self, reasons: list[str], object_id: str, outputs: Properties, inputs: Properties | None) -> None:
        """Create an error for an object that exists but is not ready."""
        super().__init__("; ".join(reasons) or "the object did not become ready")
        self.reasons = reasons
        self.object_id = object_id
        self.outputs = outputs
        self.inputs = inputs


class DeploymentStoppedError(Exception):
    """The deployment ended while a request was waiting. The request gets no response."""


class PlanError(EngineError):
    """A kept plan cannot be used. The message says what moved since it was made and what to do."""
