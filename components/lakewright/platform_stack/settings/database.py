"""Settings of the database and of the backend that stores secrets of warehouses."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Discriminator, Tag, model_validator

from lakewright.kubernetes.pod_placement import PodPlacement
from lakewright.platform_stack.settings.types import (
    GENERATED,
    Count,
    HostName,
    HttpUrl,
    Port,
    ResourceQuantity,
    SecretSource,
    Text,
)
from lakewright.platform_stack.settings.variables import EnvPrefix, EnvVar
from lakewright.validation.strict_model import StrictModel

SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]


class PostgresDatabase(StrictModel):
    """A Postgres database of version 15 or newer, given by its parts."""

    host_write: Annotated[HostName, EnvVar("PG_HOST_W")]
    """Host of the primary."""
    host_read: Annotated[HostName | None, EnvVar("PG_HOST_R")] = None
    """Host of a replica. Default: the primary."""
    port: Annotated[Port, EnvVar("PG_PORT")] = 5432
    database: Annotated[Text, EnvVar("PG_DATABASE")] = "lakekeeper"
    # `schema` would hide a method of pydantic's models.
    schema_name: Annotated[Text | None, EnvVar("PG_SCHEMA", since="0.14.0")] = None
    user: Annotated[Text, EnvVar("PG_USER")] = "lakekeeper"
    user_source: Annotated[SecretSource | None, EnvVar("PG_USER", secret=True)] = None
    """Source of the user's name instead of `user`, such as `kubernetes:SECRET#username`."""
    password: Annotated[SecretSource, EnvVar("PG_PASSWORD", secret=True)]
    ssl_mode: Annotated[SslMode, EnvVar("PG_SSL_MODE")] = "verify-full"
    ca_bundle: str | None = None
    """PEM file with the certificate authorities of the database, relative to the project's folder. Lakekeeper's client
    of the database trusts Mozilla's authorities and this file; neither `server.ca_bundle` nor the image's store."""

    @property
    def hosts(self) -> list[str]:
        """Hosts of the primary and of the replica, if there is one."""
        return [self.host_write, *([self.host_read] if self.host_read else [])]

    @property
    def remote_hosts(self) -> list[str]:
        """Hosts outside the pod."""
        return [host for host in self.hosts if not _is_own_pod(host)]

    @model_validator(mode="after")
    def _check_user(self) -> Self:
        if self.user_source == GENERATED:
            raise ValueError("`user_source` names an existing user: expected `kubernetes:SECRET#KEY` or a reference")
        if self.user_source and "user" in self.model_fields_set:
            raise ValueError("expected `user` or `user_source`, found both")
        return self


def _is_own_pod(host: str) -> bool:
    """Return whether a host is the pod itself. DNS may resolve `*.localhost`, so such a name is another host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class DatabasePools(StrictModel):
    """Connections to the database."""

    read_connections: Annotated[Count | None, EnvVar("PG_READ_POOL_CONNECTIONS")] = None
    write_connections: Annotated[Count | None, EnvVar("PG_WRITE_POOL_CONNECTIONS")] = None
    acquire_timeout: Annotated[Count | None, EnvVar("PG_ACQUIRE_TIMEOUT")] = None
    """Seconds to wait for a connection."""
    connection_max_lifetime: Annotated[Count | None, EnvVar("PG_CONNECTION_MAX_LIFETIME")] = None
    """Seconds until a connection is closed."""
    test_before_acquire: Annotated[bool | None, EnvVar("PG_TEST_BEFORE_ACQUIRE")] = None
    statement_logging: Annotated[bool | None, EnvVar("PG_ENABLE_STATEMENT_LOGGING")] = None


class TrialDatabase(StrictModel):
    """A Postgres of one pod in the cluster, without backups or replicas. For trials only."""

    image: Text
    storage: ResourceQuantity = "1Gi"
    pods: PodPlacement = PodPlacement()


class PostgresSecrets(StrictModel):
    """Secrets of warehouses in the database, encrypted with a key."""

    backend: Annotated[Literal["postgres"], EnvVar("SECRET_BACKEND")] = "postgres"
    encryption_key: Annotated[SecretSource, EnvVar("PG_ENCRYPTION_KEY", secret=True)] = GENERATED
    """Key of at least 32 random bytes. Without it, the credentials of all warehouses are lost."""


class VaultSecrets(StrictModel):
    """Secrets of warehouses in a key-value store of version 2, such as Vault, with user and password."""

    backend: Annotated[Literal["kv2"], EnvVar("SECRET_BACKEND")]
    url: Annotated[HttpUrl, EnvVar("KV2__URL")]
    user: Annotated[Text, EnvVar("KV2__USER")]
    password: Annotated[SecretSource, EnvVar("KV2__PASSWORD", secret=True)]
    secret_mount: Annotated[Text, EnvVar("KV2__SECRET_MOUNT")]


def _find_backend(value: Any) -> str:
    """Return the backend of a section, which need not be named."""
    if isinstance(value, Mapping):
        return str(cast(Mapping[str, Any], value).get("backend", "postgres"))
    return str(getattr(value, "backend", "postgres"))


class Persistence(StrictModel):
    """Database of Lakekeeper: an existing database, or a database in the cluster for trials."""

    postgres: Annotated[PostgresDatabase | None, EnvPrefix("")] = None
    trial_postgres: TrialDatabase | None = None
    pools: Annotated[DatabasePools, EnvPrefix("")] = DatabasePools()
    secrets: Annotated[
        Annotated[PostgresSecrets, Tag("postgres")] | Annotated[VaultSecrets, Tag("kv2")], Discriminator(_find_backend)
    ] = PostgresSecrets()

    @model_validator(mode="after")
    def _one_database(self) -> Self:
        if (self.postgres is None) == (self.trial_postgres is None):
            raise ValueError("expected exactly one of `postgres` (production) and `trial_postgres` (a trial)")
        return self
