"""The declaration of a server: its address and how to authenticate. Secrets are references."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lakewright.credentials.references import Reference
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
