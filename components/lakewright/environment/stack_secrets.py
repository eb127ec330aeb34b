"""Resolve references to secrets for commands that read servers, also references to the stack's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine.project.stack_config import StackConfig


def stack_resolver(settings: StackConfig) -> Callable[[str], str]:
    """Return a function that returns the secret of a reference, also of a reference to the stack's configuration."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415

    from lakewright.credentials import references  # noqa: PLC0415

    def resolve(reference: str) -> str:
        try:
            return references.resolve(reference, settings.get)
        except EngineError as error:  # such as a missing passphrase
            raise references.UnresolvedCredentialError(f"`{reference}` cannot be read: {error}") from None

    return resolve
