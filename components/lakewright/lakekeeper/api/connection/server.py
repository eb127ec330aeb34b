"""The declaration of a server: its address and how to authenticate. Secrets are references, and are sent by TLS."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lakewright.credentials.references import Reference
from lakewright.lakekeeper.api.connection.errors import InsecureEndpointError
from lakewright.names.host_kinds import leaves_without_tls
from lakewright.names.types import ProjectId, ServiceUrl, TokenUrl


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class NoServerAuth(_Strict):
    """No authentication: the server accepts anonymous requests."""

    kind: Literal["none"] = "none"


class ServerTokenAuth(_Strict):
    """A token that another process renews."""

    kind: Literal["token"]
    token: Reference


class ServerClientCredentialsAuth(_Strict):
    """OAuth2 client credentials of an identity provider (Lakekeeper itself issues no tokens)."""

    kind: Literal["client-credentials"]
    token_url: TokenUrl
    client_id: str
    client_secret: Reference
    scope: str | None = None
    audience: str | None = None


class ServerTokenFileAuth(_Strict):
    """A token file that is replaced outside the stack, such as a Kubernetes service account's. Read at each use."""

    kind: Literal["token-file"]
    path: str = "/var/run/secrets/kubernetes.io/serviceaccount/token"


ServerAuth = Annotated[
    NoServerAuth | ServerTokenAuth | ServerClientCredentialsAuth | ServerTokenFileAuth, Field(discriminator="kind")
]


class ServerRef(_Strict):
    """Address of a Lakekeeper server and how to authenticate."""

    endpoint: ServiceUrl
    auth: ServerAuth = NoServerAuth()
    ca_bundle: str | None = None
    """Path of a PEM file with additional certificate authorities, for the server and the token endpoint."""
    allow_plain_http: bool | None = None
    """Whether tokens and secrets may be sent without TLS to other machines, such as a Service of the same cluster."""
    project_id: ProjectId | None = None
    """Project of requests that name no project. Required by servers (0.12 and newer) that read roles from tokens and
    have no default project."""


def require_tls(server: ServerRef) -> None:
    """Check that tokens and secrets are sent to other machines by TLS only.

    Raises:
        InsecureEndpointError: A token or secret would be sent without TLS.
    """
    if server.allow_plain_http:
        return
    for subject, url in _confidential(server):
        if leaves_without_tls(url):
            raise InsecureEndpointError(
                f"{subject} would be sent to {url} without TLS. Use `https://`, or set `allow_plain_http: true` in the"
                " server's settings (`lakekeeper` of the environment) where the network is trusted."
            )


def as_recorded(server: ServerRef) -> ServerRef:
    """Return a server of the state, with plain HTTP allowed.

    State of versions before `allow_plain_http` does not have it, and `destroy` and `refresh` read the state only.
    Declarations are checked before they are stored in the state.
    """
    if server.allow_plain_http is not None or not any(leaves_without_tls(url) for _, url in _confidential(server)):
        return server
    return server.model_copy(update={"allow_plain_http": True})


def _confidential(server: ServerRef) -> list[tuple[str, str]]:
    """Return the secrets in requests to a server, and the URL that each is sent to."""
    if isinstance(server.auth, NoServerAuth):
        return []
    sent = [("a bearer token", server.endpoint)]
    if isinstance(server.auth, ServerClientCredentialsAuth):
        sent.append(("a client's secret", server.auth.token_url))
    return sent
