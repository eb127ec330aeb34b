"""Errors of a provider server.

SandboxProviderError         a message for the user of the stack
├── UnsupportedError         only the real provider supports it; names the plugin to install
├── NotASandboxError         the configured endpoint is not a running sandbox
├── NotConfiguredError       a call came before Configure on its connection
├── AwsCallError             AWS responded with an error code
└── MaybeCreatedError        a create ended without a response: the object may exist
"""

from __future__ import annotations


class SandboxProviderError(Exception):
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
