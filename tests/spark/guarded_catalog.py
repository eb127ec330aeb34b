"""A Lakekeeper that enforces grants and knows ServiceAccounts: a stand-in, or the user's server and its cluster."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from kubernetes import config as kubernetes_config  # pyright: ignore[reportMissingTypeStubs]
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.real_servers import RealServers, leave_out

AUDIENCE = "lakekeeper"
OPERATOR = "operator"
TOKEN_FILE = {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"}


class AccountTokens(Protocol):
    """Tokens of numbered ServiceAccounts."""

    def find_uid(self, number: int) -> str:
        """Return the uid of an account, which is created if it does not exist."""
        ...

    def issue(self, number: int) -> str:
        """Return a new token of an account."""
        ...

    def revoke(self, token: str) -> None:
        """Make a token invalid, within seconds."""
        ...


@dataclass(frozen=True)
class GuardedCatalog:
    """A Lakekeeper that enforces grants, and the identity of its operator."""

    endpoint: str
    tokens: AccountTokens
    operator: httpx.Client
    environment: Mapping[str, Any]
    """Environment of stacks, without `kubernetes`."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of stacks."""


@dataclass
class StandInTokens:
    """Takes each valid token for its ServiceAccount, as Lakekeeper does after a TokenReview."""

    app: ASGIApp
    valid: dict[str, str] = field(default_factory=lambda: {OPERATOR: f"oidc~{OPERATOR}"})
    count: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            if token not in self.valid:
                error = {"message": "no valid token", "type": "AuthenticationFailed", "code": 401}
                return await JSONResponse({"error": error}, 401)(scope, receive, send)
            user = self.valid[token]
            scope.setdefault("state", {})["principal"] = TokenPrincipal(user, name=user)
        return await self.app(scope, receive, send)

    def find_uid(self, number: int) -> str:
        return f"11111111-2222-3333-4444-{number:012}"

    def issue(self, number: int) -> str:
        self.count += 1
        token = f"token-{number}-{self.count}"
        self.valid[token] = f"kubernetes~{self.find_uid(number)}"
        return token

    def revoke(self, token: str) -> None:
        del self.valid[token]


@contextmanager
def serve_guarded_catalog(sandbox: Sandbox, folder: Path) -> Generator[GuardedCatalog, None, None]:
    """Serve a bootstrapped stand-in beside the sandbox's S3."""
    settings = Settings(
        database=f"sqlite:///{folder / 'lakekeeper.db'}",
        aws_endpoint=sandbox.aws.endpoint,
        credentials_file=sandbox.credentials_file,
        aws_system_identity=True,
        authorizer="openfga",
    )
    tokens = StandInTokens(create_app(settings))
    with serve(tokens) as endpoint:
        headers = {"authorization": f"Bearer {OPERATOR}"}
        with httpx.Client(base_url=endpoint, headers=headers, timeout=60) as operator:
            accepted = {"accept-terms-of-use": True, "is-operator": True}
            operator.post("/management/v1/bootstrap", json=accepted).raise_for_status()
            lakekeeper = {
                "endpoint": endpoint,
                "catalog_uri": f"{endpoint}/catalog",
                "auth": {"kind": "token", "token": "env:STACK_TOKEN"},
                "jobs_auth": TOKEN_FILE,
                "jobs_subject": None,
            }
            environment = {"sandbox": str(sandbox.dir), "lakekeeper": lakekeeper}
            yield GuardedCatalog(endpoint, tokens, operator, environment, {"STACK_TOKEN": OPERATOR})


class ClusterTokens:
    """Accounts in a namespace of a real cluster. A Secret for each token can end it."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        """Use a namespace that exists."""
        api = kubernetes_config.new_client_from_config(kubeconfig)
        self._core: Any = kubernetes_client.CoreV1Api(api)
        self._namespace, self._uids, self._secrets = namespace, dict[int, str](), dict[str, str]()

    @contextmanager
    def make_namespace(self) -> Generator[None, None, None]:
        """Make the namespace, and delete it at the end."""
        self._core.create_namespace({"metadata": {"name": self._namespace}})
        try:
            yield
        finally:
            self._core.delete_namespace(self._namespace)

    def find_uid(self, number: int) -> str:
        if number not in self._uids:
            account = {"metadata": {"name": f"unit-{number}"}}
            created = self._core.create_namespaced_service_account(self._namespace, account)
            self._uids[number] = str(created.metadata.uid)
        return self._uids[number]

    def issue(self, number: int) -> str:
        self.find_uid(number)
        secret = self._core.create_namespaced_secret(self._namespace, {"metadata": {"generateName": "token-"}})
        reference = {"kind": "Secret", "apiVersion": "v1", "name": secret.metadata.name, "uid": secret.metadata.uid}
        spec = {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": reference}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        response = self._core.create_namespaced_service_account_token(f"unit-{number}", self._namespace, body)
        token = str(response.status.token)
        self._secrets[token] = secret.metadata.name
        return token

    def revoke(self, token: str) -> None:
        self._core.delete_namespaced_secret(self._secrets.pop(token), self._namespace)


@contextmanager
def use_real_servers(real: RealServers) -> Generator[GuardedCatalog, None, None]:
    """Use the user's server, which must review tokens of the cluster of KUBECONFIG. Otherwise, tests are left out."""
    if real.kubeconfig is None:
        leave_out("needs KUBECONFIG of a cluster whose tokens the server reviews")
    tokens = ClusterTokens(real.kubeconfig, f"tenant-{real.run}-units")
    with real.http() as operator, tokens.make_namespace():
        if operator.get("/management/v1/info").raise_for_status().json()["authz-backend"] != "openfga":
            leave_out("needs a server that enforces grants")
        headers = {"authorization": f"Bearer {tokens.issue(0)}"}
        if httpx.get(f"{real.lakekeeper}/management/v1/whoami", headers=headers).status_code == 401:
            leave_out("needs a server that reviews tokens of the cluster of KUBECONFIG")
        environment = real.environment(Path())
        environment["lakekeeper"] |= {"jobs_auth": TOKEN_FILE, "jobs_subject": None}
        yield GuardedCatalog(real.lakekeeper, tokens, operator, environment)
