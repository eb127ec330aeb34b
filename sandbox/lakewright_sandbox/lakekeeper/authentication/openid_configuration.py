"""The configuration of an OpenID provider, and its keys (OpenID Connect Discovery 1.0, RFC 7517)."""

from __future__ import annotations

import contextlib
import ssl
from typing import Any, cast

import httpx
import jwt

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidConfiguration

_KEY_FIELDS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""Fields of keys by type, without which jwks_client_rs 0.6.1 of Lakekeeper 0.13.3 reads no key."""


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
    """Return the keys of a provider by their ids. As on the real server, a key that it cannot read refuses the set.

    Raises ProviderUnreachableError.
    """
    keys: object = _read_object(client, keys_url).get("keys")
    if not isinstance(keys, list) or not all(map(_is_readable_key, cast(list[object], keys))):
        raise ProviderUnreachableError("the keys cannot be read")
    usable_keys: dict[str, jwt.PyJWK] = {}
    for key in cast(list[dict[str, Any]], keys):
        # A provider also publishes keys that sign no token, such as a key for encryption, which PyJWT cannot use.
        with contextlib.suppress(jwt.PyJWKError, jwt.InvalidKeyError):
            usable_keys[key["kid"]] = jwt.PyJWK.from_dict(key)
    return usable_keys


def _is_readable_key(key: object) -> bool:
    if not isinstance(key, dict):
        return False
    fields = cast(dict[str, Any], key)
    kind = fields.get("kty")
    if not isinstance(kind, str) or kind not in _KEY_FIELDS:
        return False
    if kind == "RSA" and fields.get("use") not in (None, "sig", "enc"):
        return False
    return all(isinstance(fields.get(name), str) for name in ("kid", *_KEY_FIELDS[kind]))


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
