"""An ASGI application that takes the token of a request for the name of its user."""

from __future__ import annotations

from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from starlette.types import ASGIApp, Receive, Scope, Send


class TokensAsNames:
    """Takes a bearer token for the user's name. Other tests cover the checking of tokens."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = dict(scope.get("headers", [])).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if token:
            scope.setdefault("state", {})["principal"] = TokenPrincipal(f"oidc~{token}", name=token)
        await self._app(scope, receive, send)
