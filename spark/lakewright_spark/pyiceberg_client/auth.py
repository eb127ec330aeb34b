"""Authentication managers for PyIceberg that resolve references to secrets. PyIceberg loads them by name."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import requests
from pyiceberg.catalog.rest.auth import AuthManager, OAuth2AuthManager, OAuth2TokenProvider
from requests.auth import HTTPBasicAuth

from lakewright_spark.catalog.auth import resolve
from lakewright_spark.errors import IdentityError
from lakewright_spark.iceberg_values import CONNECT_SECONDS, SOCKET_SECONDS

DEFAULT_LIFETIME = 300
"""Lifetime of a token in seconds, if the identity provider does not specify it."""


class ReferencedToken(AuthManager):
    """A bearer token that is read at every request, so that the file or variable may be renewed."""

    def __init__(self, token: str) -> None:
        """Store the reference of the token."""
        self._reference = token

    def auth_header(self) -> str:
        """Return the value of the Authorization header."""
        return f"Bearer {resolve(self._reference)}"


class TimedTokenProvider(OAuth2TokenProvider):
    """Requests tokens with a time limit, an audience, headers, and the current client secret.

    PyIceberg 0.12 has none of these. `client_secret` is the reference of the secret.
    """

    audience: str | None = None
    headers: Mapping[str, str] | None = None

    def _refresh_token(self) -> None:
        data = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        data |= {"audience": self.audience} if self.audience else {}
        credentials = HTTPBasicAuth(self.client_id.encode(), resolve(self.client_secret).encode())
        timeout = (CONNECT_SECONDS, SOCKET_SECONDS)
        response = requests.post(self.token_url, data=data, headers=self.headers, auth=credentials, timeout=timeout)
        response.raise_for_status()
        token = response.json()
        self._token = token["access_token"]
        self._expires_at = int(time.monotonic() + token.get("expires_in", DEFAULT_LIFETIME) - self.refresh_margin)


class ReferencedClientCredentials(OAuth2AuthManager):
    """Client credentials, exchanged for a token that is renewed a minute before it expires.

    Each renewal reads the client secret again, so that its file or variable may change.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        token_url: str,
        scope: str | None = None,
        audience: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Store the client ID, the reference of its secret, the token endpoint, and what the token is limited to."""
        super().__init__(client_id, client_secret, token_url, scope, expires_in=DEFAULT_LIFETIME)
        provider = TimedTokenProvider(client_id, client_secret, token_url, scope, expires_in=DEFAULT_LIFETIME)
        provider.audience, provider.headers = audience, headers
        self.token_provider = provider
        self._failure = f"token endpoint {token_url} gave no token to client {client_id}"

    def auth_header(self) -> str:
        """Return the value of the Authorization header."""
        try:
            return super().auth_header()
        except requests.HTTPError as error:
            status = "an error" if error.response is None else _describe_refusal(error.response)
            raise IdentityError(f"{self._failure}: it responded with {status}") from None
        except requests.RequestException as error:
            raise IdentityError(f"{self._failure}: {type(error).__name__}") from None
        except (KeyError, ValueError):
            raise IdentityError(f"{self._failure}: its response has no access_token") from None


def _describe_refusal(response: requests.Response) -> str:
    """Return the status, with the error code of OAuth 2 or the type of an error of Iceberg REST."""
    try:
        error: Any = response.json()["error"]
        code = error if isinstance(error, str) else str(error["type"])
    except (ValueError, KeyError, TypeError):
        code = ""
    # Other texts may repeat parts of the request.
    return f"{response.status_code} ({code})" if re.fullmatch(r"[A-Za-z_]{1,60}", code) else str(response.status_code)
