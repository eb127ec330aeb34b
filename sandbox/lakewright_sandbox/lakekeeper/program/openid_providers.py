"""Connect to the OpenID providers at the start, as the real server does."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakewright_sandbox.lakekeeper.authentication.openid_configuration import (
    ProviderUnreachableError,
    open_client,
    read_configuration,
)
from lakewright_sandbox.lakekeeper.authentication.verifiers import list_openid_providers
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidProvider, Settings

log = logging.getLogger(__name__)


def connect_providers(settings: Settings) -> Settings:
    """Return the settings with the configuration of each OpenID provider that can be reached.

    An optional provider that cannot be reached is left out until the next start. Raises ProviderUnreachableError if a
    required provider, or every provider, cannot be reached.
    """
    providers = list_openid_providers(settings)
    connected = tuple(reached for provider in providers if (reached := _connect(provider, settings.ca_file)))
    if providers and not connected:
        raise ProviderUnreachableError("no OpenID provider can be reached; authentication would be disabled")
    return replace(settings, openid_provider_uri=None, openid_providers=connected)


def _connect(provider: OpenidProvider, ca_file: str | None) -> OpenidProvider | None:
    """Return the provider with its configuration; None for an optional provider that cannot be reached."""
    with open_client(ca_file) as client:
        try:
            return replace(provider, configuration=read_configuration(client, provider.uri))
        except ProviderUnreachableError as error:
            message = f"cannot connect to the OpenID provider {provider.id} ({provider.uri}): {error}"
    if provider.must_connect_at_start:
        raise ProviderUnreachableError(message)
    log.error("%s; it is left out", message)
    return None
