"""Endpoints of the identity provider: discovery, public keys, and tokens for client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import ALGORITHM, SigningKey

DISCOVERY = "/.well-known/openid-configuration"
TOKENS = "/token"
KEYS = "/keys"


class TokenRequestError(SandboxError):
    """An OAuth2 error response. The description never contains a secret."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        """Set the OAuth2 error code, the description and the HTTP status."""
        super().__init__(description)
        self.code, self.description, self.status = code, description, status


async def _respond_to_refusal(_request: Request, refused: Exception) -> Response:
    assert isinstance(refused, TokenRequestError)
    headers = {"www-authenticate": "Basic"} if refused.status == 401 else None
    return JSONResponse({"error": refused.code, "error_description": refused.description}, refused.status, headers)


@dataclass
class IdentityProvider:
    """Issue signed tokens to clients. `lifetime` in seconds is read for each token, so that tests can change it."""

    clients: Mapping[str, OAuthClient]
    key: SigningKey
    lifetime: float = 3600

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/health", self._health),
                Route(DISCOVERY, self._discovery),
                Route(KEYS, self._keys),
                Route(TOKENS, self._issue_token, methods=["POST"]),
            ],
            exception_handlers={TokenRequestError: _respond_to_refusal},
        )

    def claims(self, issuer: str, client: OAuthClient, audience: str, scope: str) -> dict[str, Any]:
        """Return the claims of a token that is issued to a client now."""
        now = time.time()
        return {
            "iss": issuer,
            "sub": client.client_id,
            "aud": audience,
            "azp": client.client_id,
            "name": client.client_id,
            "scope": scope,
            "iat": int(now),
            "exp": math.ceil(now + self.lifetime),
        }

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"health": "ok"})

    async def _discovery(self, request: Request) -> Response:
        issuer = request_issuer(request)
        return JSONResponse(
            {
                "issuer": issuer,
                "token_endpoint": f"{issuer}{TOKENS}",
                "jwks_uri": f"{issuer}{KEYS}",
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
                "id_token_signing_alg_values_supported": [ALGORITHM],
                "response_types_supported": ["token"],
                "subject_types_supported": ["public"],
            }
        )

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse(self.key.public_set())

    async def _issue_token(self, request: Request) -> Response:
        try:
            form = {key: values[-1] for key, values in parse_qs((await request.body()).decode()).items()}
        except UnicodeDecodeError:
            raise TokenRequestError("invalid_request", "the body is not a form") from None
        client = self._authenticate(form, request.headers.get("authorization", ""))
        if form.get("grant_type") != "client_credentials":
            raise TokenRequestError("unsupported_grant_type", "only client_credentials is supported")
        scope = _select_scope(client, form.get("scope"))
        audience = form.get("audience") or form.get("resource") or client.audiences[0]
        if audience not in client.audiences:
            raise TokenRequestError("invalid_target", f"client {client.client_id} may not name the audience {audience}")
        token = self.key.sign(self.claims(request_issuer(request), client, audience, scope))
        body = {"access_token": token, "token_type": "Bearer", "expires_in": int(self.lifetime), "scope": scope}
        return JSONResponse(body, headers={"cache-control": "no-store"})

    def _authenticate(self, form: Mapping[str, str], header: str) -> OAuthClient:
        """Return the client that the header (HTTP Basic) or the form authenticates."""
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, encoded = header.partition(" ")
        if scheme.lower() == "basic":
            try:
                name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                raise TokenRequestError("invalid_client", "the authorization header cannot be read", 401) from None
            client_id, secret = unquote(name), unquote(password)
        client = self.clients.get(client_id)
        if client is None or not client.has_secret(secret):
            raise TokenRequestError("invalid_client", "unknown client, or a wrong secret", 401)
        return client


def request_issuer(request: Request) -> str:
    """Return the issuer, which is the address that the client called."""
    return f"{request.url.scheme}://{request.url.netloc}"


def _select_scope(client: OAuthClient, requested: str | None) -> str:
    scopes = requested.split() if requested else list(client.scopes)
    if refused := [scope for scope in scopes if scope not in client.scopes]:
        raise TokenRequestError("invalid_scope", f"client {client.client_id} may not have the scope {refused[0]}")
    return " ".join(scopes)
