"""How a program names a server: its address and how to authenticate, by references alone."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lakewright.credentials.references import Reference
from lakewright.names.types import ProjectId, ServiceUrl, TokenUrl


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class NoAuth(_Strict):
    """The server asks nobody who they are."""

    kind: Literal["none"] = "none"


class TokenAuth(_Strict):
    """A token that somebody else keeps fresh."""

    kind: Literal["token"]
    token: Reference


class ClientCredentialsAuth(_Strict):
    """OAuth2 client credentials at an identity provider (Lakekeeper itself gives out no tokens)."""

    kind: Literal["client-credentials"]
    token_url: TokenUrl
    client_id: str
    client_secret: Reference
    scope: str | None = None
    audience: str | None = None


class TokenFileAuth(_Strict):
    """A file whose token is replaced behind our back, such as a Kubernetes service account's; read at each use."""

    kind: Literal["token-file"]
    path: str = "/var/run/secrets/kubernetes.io/serviceaccount/token"


Auth = Annotated[NoAuth | TokenAuth | ClientCredentialsAuth | TokenFileAuth, Field(discriminator="kind")]


class ServerRef(_Strict):
    """Address of a Lakekeeper server and how to authenticate towards it."""

    endpoint: ServiceUrl
    auth: Auth = NoAuth()
    ca_bundle: str | None = None
    """Path of a PEM file with authorities to trust besides the usual ones, for the server and the token endpoint."""
    allow_plain_http: bool | None = None
    """Whether tokens and secrets may be sent without TLS to other machines, such as a Service of the same cluster."""
    project_id: ProjectId | None = None
    """Project of requests that name no other. A server that reads roles from tokens and has no default project asks for
    one in every request (0.12 and newer)."""
