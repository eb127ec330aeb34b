"""A Lakekeeper that requires tokens, and the identity provider that issues them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from lakewright.credentials.references import resolve
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey

SECRET = "s3cret-of-the-client"
INFO = "/management/v1/info"
CLIENT = OAuthClient("ci", SECRET, audiences=("lakekeeper", "other"), scopes=("lake", "house"))


class GuardedWorld:
    """An identity provider, a Lakekeeper that trusts it, and clients of both."""

    def __init__(self, folder: Path, stack: ExitStack, **tls: Path) -> None:
        self.provider = IdentityProvider({"ci": CLIENT}, SigningKey())
        token_requests: list[str] = []
        self.token_requests, app = token_requests, self.provider.app()

        async def count_token_requests(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and scope["path"] == "/token":
                token_requests.append(scope["path"])
            await app(scope, receive, send)

        self.issuer = stack.enter_context(serve(count_token_requests, **tls))
        plain = stack.enter_context(serve(self.provider.app())) if tls else self.issuer
        settings = Settings(
            database=f"sqlite:///{folder / 'lakekeeper.db'}",
            skip_storage_validation=True,
            openid_provider_uri=plain,
            openid_audiences=("lakekeeper",),
        )
        self.trusted_issuer = plain
        self.endpoint = stack.enter_context(serve(FaultSwitch(create_app(settings)), **tls))

    def issue_token(self, **claims: Any) -> str:
        """Return a token of the provider, with other claims. Claims that are None are omitted."""
        all_claims = self.provider.claims(self.trusted_issuer, CLIENT, "lakekeeper", "lake") | claims
        return self.provider.key.sign({name: value for name, value in all_claims.items() if value is not None})

    def ask(self, token: str | None) -> httpx.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.get(f"{self.endpoint}{INFO}", headers=headers)

    def reference(self, **changes: Any) -> dict[str, Any]:
        auth = {
            "kind": "client-credentials",
            "token_url": f"{self.issuer}/token",
            "client_id": "ci",
            "client_secret": "env:CI_SECRET",
        }
        return {"endpoint": self.endpoint, "auth": auth | changes}

    def client(self, reference: dict[str, Any] | None = None) -> Client:
        server = ServerRef.model_validate(reference or self.reference())
        return Client(server, resolve, retry=RetryPolicy(attempts=2, first_wait=0.001))
