"""The engine's exceptions.

EngineError
├── UnsupportedFeature    a program or option asks for something that this engine does not do
├── ProgramError          the program's own mistake: a duplicate name, a bad alias, a missing parent
├── ProtectedError        a protected resource is not deleted
├── HookFailed            a hook failed, or is not there
├── ProjectError          Pulumi.yaml or a stack's configuration: missing, not readable, or says something impossible
├── StateError            a backend or checkpoint that is not there, not readable, or not as expected
│   ├── StackLocked       another process is changing the stack
│   └── StackNotFound     there is no stack of that name
├── SecretsError          a passphrase that is missing or wrong, a ciphertext that is none
└── ProviderError         a provider could not be started, or refused a call
    └── InitFailed        the object exists, but did not become healthy
"""

# ruff: noqa: N818 - the names say what happened

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewright_engine.model.resources import Properties


class EngineError(Exception):
    """Something that a person can read and act on; never holds a secret."""

    exit_code = 1
    """The CLI's exit code for it."""


class UnsupportedFeature(EngineError):
    """Names the feature and the way out."""


class ProgramError(EngineError):
    """The program asks for something impossible."""


class ProtectedError(EngineError):
    """Names the resource and how to unprotect it."""


class HookFailed(EngineError):
    """Names the hook, and says what it raised."""


class ProjectError(EngineError):
    """Names the file, what was expected and what was found."""


class StateError(EngineError):
    """Names the stack or file, and what to do about it."""


class StackLocked(StateError):
    """Names who holds the lock, and how to cancel it."""


class StackNotFound(StateError):
    """Names the stack and how to make it."""

    exit_code = 6


class SecretsError(EngineError):
    """Never says more than which stack and which variable."""


class ProviderError(EngineError):
    """What a provider answered, in its own words."""

    def __init__(self, message: str, *, unimplemented: bool = False, ambiguous: bool = False) -> None:
        super().__init__(message)
        self.unimplemented = unimplemented
        self.ambiguous = ambiguous
        """The call may have done its work all the same: no answer came, or the provider itself could not tell."""


class InitFailed(ProviderError):
    """A create, update or read that left an object which is not ready; `reasons` say why."""

    def __init__(self, reasons: list[str], object_id: str, outputs: Properties, inputs: Properties | None) -> None:
        super().__init__("; ".join(reasons) or "the object did not become ready")
        self.reasons = reasons
        self.object_id = object_id
        self.outputs = outputs
        self.inputs = inputs


class Stopped(Exception):
    """The deployment ended while a request was waiting; whoever asked gets no answer."""
