"""The identities of a tenant's computing units and jobs, and how their credentials are obtained from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakewright.client_access.check import IdentityUnavailableError
from lakewright.credentials import references
from lakewright.credentials.references import ClientToken
from lakewright.lakekeeper.api.connection.server import (
    NoServerAuth,
    ServerAuth,
    ServerClientCredentialsAuth,
    ServerTokenAuth,
)
from lakewright.verify.session.cluster import TenantCluster

_PLACEHOLDER_REFERENCE = "env:CREDENTIAL_OF_A_UNIT"
"""Reference that a credential's `resolve` returns the secret for; no such variable is read."""

Credential = tuple[ServerAuth, Callable[[str], str]]
"""Authentication of a client of Lakekeeper, and the function that resolves its references."""


@dataclass(frozen=True)
class AccountTokens:
    """Tokens of a Kubernetes ServiceAccount, which the cluster issues on request."""

    service_account: str
    audiences: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobsToken:
    """The token of `jobs_auth`, behind a reference."""

    token: str


CredentialSource = AccountTokens | ClientToken | JobsToken


@dataclass(frozen=True)
class ProbeIdentity:
    """One identity and the warehouses that it may use."""

    name: str
    """The computing units and jobs with this identity."""
    warehouses: tuple[str, ...]
    source: CredentialSource | None
    """None: requests are anonymous."""
    secret: tuple[str, str] | None = None
    """Name and key of the Secret that its pods read their credential from."""
    problem: str | None = None
    """Why the catalog cannot distinguish it from other tenants."""
    remedy: str = ""
    """How to give it an identity that the catalog distinguishes; empty without a problem."""
    is_shared_with_maintenance: bool = False
    """Whether the maintenance jobs authenticate with this client, which may change the warehouses."""


def obtain_credential(
    subject: ProbeIdentity,
    cluster: Callable[[], TenantCluster | None],
    resolve: Callable[[str], str] = references.resolve,
) -> Credential:
    """Return how to authenticate as a subject.

    Args:
        subject: The identity.
        cluster: Returns the tenant's namespace; None if manifests are only rendered.
        resolve: Returns the secret of a reference.

    Raises:
        IdentityUnavailableError: The credential cannot be obtained from here.
    """
    match subject.source:
        case None:
            return NoServerAuth(), resolve
        case AccountTokens(account, audiences):
            if (tenant := cluster()) is None:
                raise IdentityUnavailableError(
                    f"the token of ServiceAccount {account} comes from a cluster; this environment only renders"
                    " manifests (`kubernetes.render_to`)"
                )
            token = tenant.issue_token(account, audiences)
            return ServerTokenAuth(kind="token", token=_PLACEHOLDER_REFERENCE), lambda _reference: token
        case JobsToken(reference):
            token = _read_secret(reference, cluster, subject.secret, resolve)
            return ServerTokenAuth(kind="token", token=_PLACEHOLDER_REFERENCE), lambda _reference: token
        case ClientToken() as client:
            value = _read_secret(client.client_secret, cluster, subject.secret, resolve)
            auth = ServerClientCredentialsAuth(
                kind="client-credentials",
                token_url=client.token_url,
                client_id=client.client_id,
                client_secret=_PLACEHOLDER_REFERENCE,
                scope=client.scope,
                audience=client.audience,
            )
            return auth, lambda _reference: value


def _read_secret(
    reference: str | None,
    cluster: Callable[[], TenantCluster | None],
    secret: tuple[str, str] | None,
    resolve: Callable[[str], str],
) -> str:
    """Return a secret that units read by a reference: from this machine, or from the Secret that they mount."""
    reason = "neither the spec nor the environment names a reference to it"
    if reference is not None:
        try:
            return resolve(reference)
        except references.UnresolvedCredentialError as error:
            reason = str(error)
    tenant = cluster() if secret else None
    if tenant is None or secret is None:
        raise IdentityUnavailableError(f"the credential of the computing units cannot be read here: {reason}")
    return tenant.read_secret(*secret)
