"""Connect to the OpenID providers at the start, as the real server does."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.authentication import create_token_verifier, list_openid_providers
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

log = logging.getLogger(__name__)


class ProvidersUnreachableError(SandboxError):
    """The server cannot start without an OpenID provider."""


def connect_providers(settings: Settings) -> Settings:
    """Return the settings without the optional providers that cannot be reached.

    A provider that was left out is not tried again before the next start. Raises ProvidersUnreachableError if a
    required provider, or every provider, cannot be reached.
    """
    providers = list_openid_providers(settings)
    unreachable = [
        provider for provider in providers if not create_token_verifier(provider, settings.ca_file).can_connect()
    ]
    for provider in unreachable:
        message = f"cannot connect to the OpenID provider {provider.id} ({provider.uri})"
        if provider.must_connect_at_start:
            raise ProvidersUnreachableError(message)
        log.error("%s; it is left out", message)
    if providers and len(unreachable) == len(providers):
        raise ProvidersUnreachableError("none of the OpenID providers can be reached; authentication would be disabled")
    reachable = tuple(provider for provider in settings.openid_providers if provider not in unreachable)
    return replace(settings, openid_providers=reachable)
