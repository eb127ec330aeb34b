"""Authenticate the callers of all requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jwt
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from lakewright_sandbox.lakekeeper.authentication.token_claims import Claims, build_refusal
from lakewright_sandbox.lakekeeper.authentication.verifiers import Verifier
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal

PROJECT_NEEDED = (
    "Default project must be set or X-Project-ID header must be provided if roles are extracted from tokens"
)

OPEN = frozenset({"/health"})
"""Paths without authentication."""


class Authentication:
    """Middleware that stores the caller in the request's state, or responds 401."""

    def __init__(self, app: ASGIApp, verifiers: Sequence[Verifier], *, needs_project: bool) -> None:
        """Wrap an application.

        Args:
            app: The application.
            verifiers: Verifiers of accepted tokens.
            needs_project: Whether a caller whose token has roles must name their project.
        """
        self._app, self._verifiers, self._needs_project = app, verifiers, needs_project

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate and forward one request."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        try:
            token = _get_bearer_token(scope)
            principal = await run_in_threadpool(self._find_principal, token)
            if self._needs_project and principal.has_roles:
                _check_project_named(scope)
        except ApiError as refused:
            await refused.response()(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    def _find_principal(self, token: str) -> TokenPrincipal:
        """Return the principal by the first verifier that handles the token. A sole verifier gets every token."""
        first, *further = self._verifiers
        if not further:
            return first.principal(token)
        try:
            claims: Claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            raise build_refusal("NoToken") from None
        for verifier in self._verifiers:
            if verifier.handles(claims):
                return verifier.principal(token)
        raise build_refusal("NoProvider")


def _check_project_named(scope: Scope) -> None:
    headers = cast(list[tuple[bytes, bytes]], scope["headers"])
    if not any(name in {b"x-project-id", b"x-project-ident"} and value for name, value in headers):
        raise ApiError(400, "MissingProjectId", PROJECT_NEEDED)


def _get_bearer_token(scope: Scope) -> str:
    headers = cast(list[tuple[bytes, bytes]], scope["headers"])
    value = next((value for name, value in headers if name == b"authorization"), b"").decode("latin-1")
    if not value:
        raise ApiError(401, "MissingAuthorizationHeader", "Authorization header is missing")
    scheme, _, token = value.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise build_refusal("NoBearerToken")
    return token.strip()
