"""A Lakekeeper warehouse of a tenant, and the namespaces in it."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from lakewright.names.namespace_presets import PRESETS
from lakewright.names.principal import Principal
from lakewright.names.types import Deletion, FormatVersion, NamespacePath, PrincipalArn, S3KeyPrefix
from lakewright.storage.lifecycle import PrefixLifecycle
from lakewright.validation.strict_model import StrictModel


def _catalog_name(name: str) -> str:
    # Texera's rule. The name is also the catalog's name in Spark and part of a role's name.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise ValueError("expected up to 40 letters, digits, `-` and `_`, the first a letter or digit")
    return name


CatalogName = Annotated[str, AfterValidator(_catalog_name)]
"""Name of a warehouse, and of its catalog in Spark and PyIceberg."""


class NamespacePreset(StrictModel):
    """The namespaces of a known application, and additional namespaces."""

    preset: Literal["texera"]
    also: list[NamespacePath] = []


def _form(value: object) -> str:
    return "tag:preset" if isinstance(value, dict | NamespacePreset) else "tag:list"


Namespaces = Annotated[
    Annotated[NamespacePreset, Tag("tag:preset")] | Annotated[list[NamespacePath], Tag("tag:list")],
    Discriminator(_form),
]


class TrustedPrincipal(StrictModel):
    """A principal outside the catalog that may assume a role of the warehouse."""

    principal_arn: PrincipalArn
    """IAM role, user or account. It must name the external ID of the role, which `lakewright external-ids` prints."""


QueueName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class QueueSettings(StrictModel):
    """Settings of a task queue of a warehouse."""

    config: dict[str, Any] = {}
    """Settings in Lakekeeper's names."""
    max_seconds_since_last_heartbeat: Annotated[int, Field(ge=1)] | None = None
    """Seconds without a heartbeat after which a task counts as lost. Default: the server keeps its value."""


ShareName = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$")]


class WarehouseSpec(StrictModel):
    """One warehouse: a prefix of a storage, with a role that reaches that prefix alone."""

    name: CatalogName
    renamed_from: CatalogName | None = None
    """Earlier name in this spec. The warehouse is renamed in place and keeps its key prefix and role."""
    storage: str | None = None
    """Name of the storage; required if there are several."""
    owner: Principal | None = None
    """Principal whose runs may write: `user:IDP~SUBJECT` or `role:NAME`. Principals with both `create` and `modify` on
    the warehouse or the project may write, too. Default: every run of the tenant."""
    key_prefix: Annotated[S3KeyPrefix, Field(min_length=1)] | None = None
    """Default: TENANT/WAREHOUSE, with the warehouse's first name."""
    namespaces: Namespaces = []
    soft_delete_days: Annotated[int, Field(ge=1, le=365)] | None = None
    """Days during which a dropped table can be restored. Without it, dropping is final."""
    deletion: Deletion = "protect"
    """Effect of a deletion while tables exist: `protect` refuses, `retain` keeps everything, `purge` deletes it."""
    adopt: bool = False
    """Adopt an existing warehouse of this name, its namespaces and its role."""
    protected: bool = False
    """Lakekeeper's protection: the warehouse cannot be deleted without force."""
    format_versions: Annotated[list[FormatVersion], Field(min_length=1)] | None = None
    """Allowed versions of the Iceberg table format. Default: all that the server supports."""
    delegation: Literal["vended", "remote-signing"] = "vended"
    """How clients access S3: with short-lived credentials for one table, or with requests that the catalog signs."""
    remote_signing: bool = False
    """Whether Lakekeeper also signs requests of clients that ask for it, besides vending credentials."""
    session_tags: dict[str, str] = {}
    """Session tags of the catalog's role sessions, for the tenant's own policies."""
    token_seconds: Annotated[int, Field(ge=900, le=43200)] | None = None
    """Lifetime of vended credentials, in seconds. Default: 3600. AWS allows more only if Lakekeeper runs as an IAM
    user: sessions that another role opens last an hour at most."""
    vending_role: bool = False
    """Whether Lakekeeper vends credentials with a role of its own, apart from the role of its own access."""
    maintenance_role: TrustedPrincipal | None = None
    """Principal that gets a role for maintenance outside the catalog: it lists all files and versions of the warehouse,
    reads and deletes files, and cannot delete versions."""
    shares: dict[ShareName, TrustedPrincipal] = {}
    """Consumers outside the catalog, each with a role that reads the warehouse's files."""
    lifecycle: PrefixLifecycle | None = None
    """Lifecycle of the warehouse's objects. Default: that of the storage."""
    task_queues: dict[QueueName, QueueSettings] = {}
    """Settings of Lakekeeper's task queues, by name. Settings of `maintenance.server` are not repeated here. Lakekeeper
    keeps its own settings for other queues."""

    @property
    def namespace_paths(self) -> list[str]:
        """Return declared namespaces and their parents, parents first, without duplicates."""
        namespaces = self.namespaces
        paths = (
            [*PRESETS[namespaces.preset], *namespaces.also] if isinstance(namespaces, NamespacePreset) else namespaces
        )
        with_parents = (
            ".".join(levels[:depth])
            for levels in (path.split(".") for path in paths)
            for depth in range(1, len(levels) + 1)
        )
        return list(dict.fromkeys(with_parents))
