"""What PyIceberg proves itself with: its own auth managers, with secrets read by their references and never kept."""

from __future__ import annotations

import time

import requests
from pyiceberg.catalog.rest.auth import AuthManager, OAuth2AuthManager, OAuth2TokenProvider

from lakewright_spark.catalog.auth import resolve
from lakewright_spark.errors import IdentityError
from lakewright_spark.timeouts import CONNECT, SOCKET

UNSAID_LIFE = 300
"""Seconds that a token is used for if the identity provider doesn't say how long it lives."""


class ReferencedToken(AuthManager):
    """A bearer token, read again at every request: whoever renews the file or variable need not tell anyone."""

    def __init__(self, token: str) -> None:
        self._reference = token

    def auth_header(self) -> str:
        return f"Bearer {resolve(self._reference)}"


class TimedTokenProvider(OAuth2TokenProvider):
    """Asks for tokens with a time-out. PyIceberg 0.12 waits for an answer without end."""

    def _refresh_token(self) -> None:
        data = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        headers = {"Authorization": self._client_secret_header}
        answer = requests.post(self.token_url, data=data, headers=headers, timeout=(CONNECT, SOCKET))
        answer.raise_for_status()
        found = answer.json()
        self._token = found["access_token"]
        self._expires_at = int(time.monotonic() + found.get("expires_in", UNSAID_LIFE) - self.refresh_margin)


class ReferencedClientCredentials(OAuth2AuthManager):
    """Client credentials, exchanged for a token that is renewed a minute before its end."""

    def __init__(self, client_id: str, client_secret: str, token_url: str, scope: str | None = None) -> None:
        super().__init__(client_id, resolve(client_secret), token_url, scope, expires_in=UNSAID_LIFE)
        self.token_provider = TimedTokenProvider(
            client_id, resolve(client_secret), token_url, scope, expires_in=UNSAID_LIFE
        )
        self._told = f"token endpoint {token_url} gave no token to client {client_id}"

    def auth_header(self) -> str:
        try:
            return super().auth_header()
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else "an error"
            raise IdentityError(f"{self._told}: it answered {status}") from None
        except requests.RequestException as error:
            raise IdentityError(f"{self._told}: {type(error).__name__}") from None
        except (KeyError, ValueError):
            raise IdentityError(f"{self._told}: its answer has no access_token in it") from None
