"""The configuration of an OpenID provider, and its keys (OpenID Connect Discovery 1.0, RFC 7517)."""

from __future__ import annotations

import ssl
from typing import Any, cast

import httpx
import jwt

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidConfiguration


class ProviderUnreachableError(SandboxError):
    """The provider does not respond, or its response is not what the standard says."""


def open_client(ca_file: str | None) -> httpx.Client:
    """Return a client for providers, which trusts the authorities of a file, by default the public authorities."""
    verify = ssl.create_default_context(cafile=ca_file) if ca_file else True
    return httpx.Client(timeout=10, trust_env=False, verify=verify, follow_redirects=True)


def read_configuration(client: httpx.Client, uri: str) -> OpenidConfiguration:
    """Return the configuration of the provider at an address. Raises ProviderUnreachableError."""
    document = _read_object(client, f"{uri if uri.endswith('/') else uri + '/'}.well-known/openid-configuration")
    issuer, keys_url = document.get("issuer"), document.get("jwks_uri")
    if not isinstance(issuer, str) or not isinstance(keys_url, str) or not is_url(keys_url):
        raise ProviderUnreachableError("the configuration needs `issuer` and the URL `jwks_uri`")
    return OpenidConfiguration(issuer, keys_url)


def read_keys(client: httpx.Client, keys_url: str) -> dict[str, jwt.PyJWK]:
    """Return the keys of a provider by their ids. Raises ProviderUnreachableError."""
    try:
        keys = jwt.PyJWKSet.from_dict(_read_object(client, keys_url)).keys
    except (jwt.PyJWTError, TypeError, ValueError, AttributeError) as error:
        raise ProviderUnreachableError(f"the keys cannot be read: {type(error).__name__}") from None
    return {key.key_id: key for key in keys if key.key_id}


def is_url(text: str) -> bool:
    """Return whether a text is an absolute URL."""
    try:
        return httpx.URL(text).is_absolute_url
    except httpx.InvalidURL:
        return False


def _read_object(client: httpx.Client, url: str) -> dict[str, Any]:
    try:
        document = client.get(url).raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ProviderUnreachableError(type(error).__name__) from None
    if not isinstance(document, dict):
        raise ProviderUnreachableError("the response is no JSON object")
    return cast(dict[str, Any], document)
