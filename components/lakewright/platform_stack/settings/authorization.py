"""Settings of authorization: OpenFGA beside the server, an existing OpenFGA, or none in trials."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lakewright.names.types import UserId
from lakewright.platform_stack.settings.pods import PodSettings
from lakewright.platform_stack.settings.types import GENERATED, Count, HttpUrl, Port, SecretSource, Text
from lakewright.platform_stack.settings.variables import EnvPrefix, EnvVar
from lakewright.validation.strict_model import StrictModel


class OpenFgaServer(StrictModel):
    """OpenFGA beside Lakekeeper. It keeps its data in a database of its own."""

    image: Text
    """Image of OpenFGA 1.11 or newer, by digest."""
    replicas: Count = 2
    pods: PodSettings = PodSettings()
    max_open_connections: Count = 30
    """Connections of each replica to its database, which must allow `replicas` times as many."""
    max_idle_connections: Count = 10
    check_cache_seconds: Count | None = None
    """Seconds that results of checks are cached. A revoked permission is effective that much later. Default: none."""
    check_cache_limit: Count = 10000
    """Entries of the cache."""
    database_port: Port = 5432
    """Port of `database_uri`, for the NetworkPolicy: the stack does not read the secret for it."""
    database_uri: SecretSource | None = None
    """`postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full` by reference. Default with `trial_postgres`: a
    database in it."""
    database_ca_bundle: str | None = None
    """PEM file with the certificate authorities of that database, relative to the project's folder. OpenFGA then trusts
    no others. RDS requires it, as `database.postgres.ca_bundle` does for Lakekeeper."""


class OpenFgaClientCredentials(StrictModel):
    """OAuth2 client for a given OpenFGA."""

    client_id: Annotated[Text, EnvVar("CLIENT_ID")]
    client_secret: Annotated[SecretSource, EnvVar("CLIENT_SECRET", secret=True)]
    token_endpoint: Annotated[HttpUrl, EnvVar("TOKEN_ENDPOINT")]
    scope: Annotated[Text | None, EnvVar("SCOPE")] = None


class OpenFgaSettings(StrictModel):
    """The OpenFGA that decides on permissions."""

    endpoint: Annotated[HttpUrl | None, EnvVar("ENDPOINT")] = None
    """Address of a given OpenFGA (gRPC)."""
    server: OpenFgaServer | None = None
    """OpenFGA beside Lakekeeper instead."""
    api_key: Annotated[SecretSource | None, EnvVar("API_KEY", secret=True)] = None
    """Pre-shared key. Default with `server`: generated."""
    client_credentials: Annotated[OpenFgaClientCredentials | None, EnvPrefix("")] = None
    store_name: Annotated[Text | None, EnvVar("STORE_NAME")] = None
    authorization_model_prefix: Annotated[Text | None, EnvVar("AUTHORIZATION_MODEL_PREFIX")] = None
    authorization_model_version: Annotated[
        Annotated[str, Field(pattern=r"^\d+\.\d+$")] | None, EnvVar("AUTHORIZATION_MODEL_VERSION")
    ] = None
    max_batch_check_size: Annotated[Count | None, EnvVar("MAX_BATCH_CHECK_SIZE")] = None
    """Checks in a request of Lakekeeper, by default 50. OpenFGA beside the server accepts as many."""

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        if (self.endpoint is None) == (self.server is None):
            raise ValueError("expected exactly one of `endpoint` (a given OpenFGA) and `server` (beside Lakekeeper)")
        if self.api_key and self.client_credentials:
            raise ValueError("expected at most one of `api_key` and `client_credentials`: Lakekeeper ignores the key")
        if self.server and self.client_credentials:
            raise ValueError("`client_credentials` belong to a given OpenFGA; `server` has an `api_key`")
        return self

    @property
    def key_source(self) -> str | None:
        """Source of the pre-shared key; None if there is none."""
        return self.api_key or (GENERATED if self.server else None)


class Authorization(StrictModel):
    """Authorization of callers."""

    backend: Annotated[Literal["openfga", "allowall"], EnvVar("AUTHZ_BACKEND")] = "openfga"
    """`allowall` lets every caller do everything: for trials only."""
    openfga: Annotated[OpenFgaSettings | None, EnvPrefix("OPENFGA__")] = None
    instance_admins: Annotated[list[UserId] | None, EnvVar("INSTANCE_ADMINS", since="0.12.1", form="array")] = None
    """Users that may manage all projects, but not read data."""

    @model_validator(mode="after")
    def _openfga_is_given(self) -> Self:
        if (self.backend == "openfga") != (self.openfga is not None):
            raise ValueError("expected `openfga` with the backend `openfga`, and only with it")
        return self
