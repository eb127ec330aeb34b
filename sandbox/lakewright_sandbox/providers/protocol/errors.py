"""Errors of a provider server. `lakewright_sandbox.errors` draws the tree."""

from __future__ import annotations

from lakewright_sandbox.errors import SandboxError


class SandboxProviderError(SandboxError):
    """Base of the providers' errors. The user of the stack reads the message unchanged."""


class UnsupportedError(SandboxProviderError):
    """Only the real provider supports it."""


class NotASandboxError(SandboxProviderError):
    """The configured endpoint is not a running sandbox."""


class NotConfiguredError(SandboxProviderError):
    """A call arrived on a connection that was never configured."""


class MaybeCreatedError(SandboxProviderError):
    """A create failed although its object may exist; the engine must look for it before it creates one."""


class AwsCallError(SandboxProviderError):
    """AWS refused a call; `code` is its error code."""

    def __init__(self, code: str, sentence: str) -> None:
        """Set the error code and the message."""
        super().__init__(sentence)
        self.code = code
