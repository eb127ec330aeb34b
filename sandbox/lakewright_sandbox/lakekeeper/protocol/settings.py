"""Settings of the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lakewright_sandbox.lakekeeper.protocol.versions import RELEASED, Version, is_at_least

NIL_PROJECT = "00000000-0000-0000-0000-000000000000"
DATABASE_VARIABLE = "LAKEWRIGHT_SANDBOX_DATABASE"
"""Environment variable of the database URL, for URLs with a password, which `ps` would expose."""


@dataclass(frozen=True)
class KeyValueStore:
    """A key-value store of version 2 for the credentials of warehouses."""

    url: str
    user: str
    password: str = field(repr=False)
    secret_mount: str = "secret"  # noqa: S105 - a path


DEFAULT_SUBJECT_CLAIMS = ("oid", "sub")
"""Claims with the subject of a token, in order of preference."""


@dataclass(frozen=True)
class OpenidConfiguration:
    """The issuer of an OpenID provider, and the address of its keys."""

    issuer: str
    keys_url: str


@dataclass(frozen=True)
class OpenidProvider:
    """An OpenID provider. Its users have the ids `ID~SUBJECT`."""

    id: str
    uri: str
    audiences: tuple[str, ...] = ()
    subject_claims: tuple[str, ...] = DEFAULT_SUBJECT_CLAIMS
    roles_claim: str | None = None
    additional_issuers: tuple[str, ...] = ()
    scope: str | None = None
    """Scope that every token must have."""
    must_connect_at_start: bool = True
    """Whether the server refuses to start while this provider cannot be reached; otherwise, it leaves it out."""
    configuration: OpenidConfiguration | None = None
    """Read at the start. Servers that start before their provider have none, and ask for it at the first token."""


@dataclass(frozen=True)
class Settings:
    """The sandbox's counterpart of Lakekeeper's environment variables, with the real server's defaults.

    `aws_endpoint` is the AWS endpoint of storage profiles without one. `credentials_file` and `profile` hold the base
    identity of `aws-system-identity`, read at every use.

    An OpenID provider and a Kubernetes cluster enable authentication, separately or together. Without
    `openid_audiences` the audience of the provider's tokens is not checked; without `kubernetes_audiences` only tokens
    for the cluster itself are accepted. The real server reviews each token at the cluster, and so does the sandbox
    with `kubeconfig`, or `in_cluster` with the ServiceAccount of its pod; with `kubernetes_issuer` it checks tokens by
    the cluster's keys. If tokens have `openid_roles_claim` and `default_project` is empty, requests must name their
    project.

    With `maintenance_queues` the server has the queues of Lakekeeper's enterprise edition; their configuration is
    stored, and no work is done.

    `adls_endpoint` is a Blob service whose paths begin with the account; `gcs_endpoint` has the JSON API and the
    Security Token Service. Both are emulators behind the servers of `object_stores`.

    `audit_log` is a file for audit events, which the real server logs on stdout.

    A drop without a purge parameter is purged after a delay: Spark's `DROP TABLE ... PURGE` is such a drop, after which
    Spark deletes the files itself and must find them. (The real server polls its queues every 10 s.)
    """

    database: str = field(repr=False)
    read_database: str | None = field(default=None, repr=False)
    """Database for reading only, such as a replica. Default: `database`."""
    creates_tables: bool = True
    """Whether the server creates its tables; otherwise a migration did."""
    encryption_key: str | None = field(default=None, repr=False)
    key_value_store: KeyValueStore | None = None
    base_uri: str | None = None
    """Address of the server for clients. Default: that of the request."""
    ca_file: str | None = None
    """File of certificate authorities for providers and stores of secrets."""
    version: Version = RELEASED
    aws_endpoint: str | None = None
    credentials_file: Path | None = None
    profile: str = "lakekeeper"
    adls_endpoint: str | None = None
    gcs_endpoint: str | None = None
    azure_system_identity: bool = False
    gcp_system_identity: bool = False
    aws_system_identity: bool = False
    direct_system_identity: bool = False
    require_external_id: bool = True
    skip_storage_validation: bool = False
    instance_admin: bool = False
    openid_provider_uri: str | None = None
    openid_audiences: tuple[str, ...] = ()
    openid_roles_claim: str | None = None
    openid_subject_claims: tuple[str, ...] = DEFAULT_SUBJECT_CLAIMS
    openid_additional_issuers: tuple[str, ...] = ()
    openid_scope: str | None = None
    openid_providers: tuple[OpenidProvider, ...] = ()
    kubernetes_issuer: str | None = None
    kubeconfig: Path | None = None
    in_cluster: bool = False
    kubernetes_audiences: tuple[str, ...] = ()
    kubernetes_subject: Literal["uid", "username"] = "uid"
    authorizer: Literal["allowall", "openfga"] = "allowall"
    default_project: str = NIL_PROJECT
    reserved_namespaces: tuple[str, ...] = ("system", "examples", "information_schema")
    page_size_default: int = 100
    page_size_max: int = 1000
    task_poll_seconds: float = 0.2
    unasked_purge_delay_seconds: int = 10
    idempotency_seconds: int = 1800
    status_cache_seconds: int = 60
    maintenance_queues: bool = False
    audit_log: Path | None = None

    def is_at_least(self, version: str) -> bool:
        """Return whether the emulated server has at least that version."""
        return is_at_least(self.version, version)

    @property
    def openfga(self) -> bool:
        """Return whether grants are enforced. They are stored either way."""
        return self.authorizer == "openfga"
