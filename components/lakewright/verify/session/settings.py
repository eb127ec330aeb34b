"""Settings of an environment that probes need: the server, the cluster and the AWS account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lakewright.client_access.role_documents import AwsSettings
from lakewright.credentials.references import resolve as resolve_reference
from lakewright.lakekeeper.api.connection.server import ServerAuth


@dataclass(frozen=True)
class VerifiedServer:
    """The Lakekeeper server of the tenants."""

    endpoint: str
    auth: ServerAuth
    """How the stack authenticates. Probes compare with it, and never use it."""
    ca_bundle: str | None = None
    allow_plain_http: bool = False
    principal_arn: str | None = None
    """AWS identity that assumes the roles of warehouses; None if the environment names none."""


@dataclass(frozen=True)
class VerifiedCluster:
    """The cluster of the tenant's pods."""

    context: str | None = None
    """Context of the kubeconfig. None: its current context."""
    rendered: Path | None = None
    """Folder of the tenant's manifests, if they are rendered instead of applied."""
    own_secrets: frozenset[str] = frozenset()
    """Names of the Secrets that the pods need themselves: their credential for the catalog, their server's key."""


@dataclass(frozen=True)
class VerifySettings:
    """Settings of one run."""

    server: VerifiedServer
    cluster: VerifiedCluster
    aws: AwsSettings
    certificates: tuple[str, ...] = ()
    """Certificate authorities of stores, as PEM text."""
    references: frozenset[str] = frozenset()
    """References to secrets of environment and spec, which must not occur in pods."""
    resolve: Callable[[str], str] = resolve_reference
    """Returns the secret of a reference; with `config:KEY` from the stack's configuration."""
