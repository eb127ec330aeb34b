"""Authentication managers for PyIceberg that resolve references to secrets. PyIceberg loads them by name."""

from __future__ import annotations

import time

import requests
from pyiceberg.catalog.rest.auth import AuthManager, OAuth2AuthManager, OAuth2TokenProvider

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
    """Requests tokens with a time limit and an audience. PyIceberg 0.12 has neither."""

    audience: str | None = None

    def _refresh_token(self) -> None:
        data = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        data |= {"audience": self.audience} if self.audience else {}
        headers = {"Authorization": self._client_secret_header}
        response = requests.post(self.token_url, data=data, headers=headers, timeout=(CONNECT_SECONDS, SOCKET_SECONDS))
        response.raise_for_status()
        token = response.json()
        self._token = token["access_token"]
        self._expires_at = int(time.monotonic() + token.get("expires_in", DEFAULT_LIFETIME) - self.refresh_margin)


class ReferencedClientCredentials(OAuth2AuthManager):
    """Client credentials, exchanged for a token that is renewed a minute before it expires."""

    def __init__(
        self, client_id: str, client_secret: str, token_url: str, scope: str | None = None, audience: str | None = None
    ) -> None:
        """Store the client ID, the reference of its secret, the token endpoint, and what the token is limited to."""
        super().__init__(client_id, resolve(client_secret), token_url, scope, expires_in=DEFAULT_LIFETIME)
        provider = TimedTokenProvider(client_id, resolve(client_secret), token_url, scope, expires_in=DEFAULT_LIFETIME)
        provider.audience = audience
        self.token_provider = provider
        self._failure = f"token endpoint {token_url} gave no token to client {client_id}"

    def auth_header(self) -> str:
        """Return the value of the Authorization header."""
        try:
            return super().auth_header()
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else "an error"
            raise IdentityError(f"{self._failure}: it responded with {status}") from None
        except requests.RequestException as error:
            raise IdentityError(f"{self._failure}: {type(error).__name__}") from None
        except (KeyError, ValueError):
            raise IdentityError(f"{self._failure}: its response has no access_token") from None
