"""What can go wrong in a provider server.

ProviderError                a sentence for the person who runs the stack
├── UnsupportedError         the real provider knows it, this one does not: says which plugin does
├── NotASandboxError         the configured endpoint is not a running sandbox
├── NotConfiguredError       a call came before Configure on its connection
├── RefusedError             AWS answered with an error code
└── PerhapsMadeError         a create ended without an answer: the object may exist
"""

from __future__ import annotations


class SandboxProviderError(Exception):
    """A sentence for the person who runs the stack; it reaches them as it is."""


class UnsupportedError(SandboxProviderError):
    """Something that only the real provider can do, refused by name."""


class NotASandboxError(SandboxProviderError):
    """The provider would talk to something that is not a running sandbox."""


class NotConfiguredError(SandboxProviderError):
    """A call arrived on a connection that was never configured."""


class MaybeCreatedError(SandboxProviderError):
    """A create whose object may exist although the call failed; the engine has to look for it before it makes one."""


class AwsCallError(SandboxProviderError):
    """AWS refused a call; `code` is its error code."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
