"""A Lakekeeper warehouse of a tenant, and the namespaces in it."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from lakewright.field_map.marks import Makes, NotExpressibleError, NoWayBack, Sets
from lakewright.names.grant_names import Principal
from lakewright.names.table_name import PRESETS, match_preset
from lakewright.names.types import (
    Deletion,
    FormatVersion,
    NamespacePath,
    PrincipalArn,
    S3KeyPrefix,
    WarehouseDeletion,
)
from lakewright.spec.adoption import Adoption
from lakewright.spec.limits import WarehouseLimitsSpec
from lakewright.storage.lifecycle import PrefixLifecycle
from lakewright.validation.moment import EndText, parse_duration
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


class ShareSpec(TrustedPrincipal):
    """A consumer outside the catalog, with a role that reads the warehouse's files."""

    until: EndText | None = None
    """Last day of the share, in UTC, or a time with its zone. From then on AWS refuses the role and its open sessions;
    the next `up` deletes the role."""


QueueName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class QueueSettings(StrictModel):
    """Settings of a task queue of a warehouse."""

    config: dict[str, Any] = {}
    """Settings in Lakekeeper's names."""
    max_seconds_since_last_heartbeat: Annotated[int, Field(ge=1)] | None = None
    """Seconds without a heartbeat after which a task counts as lost. Default: the server keeps its value."""


ShareName = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$")]

_SECONDS_PER_DAY = 86_400
_MAX_SOFT_DELETE_DAYS = 365
_USUAL_TOKEN_SECONDS = 3600
_ALL_FORMAT_VERSIONS = frozenset({1, 2, 3})
_CREDENTIAL_IS_HIDDEN = "a credential cannot be read back from the server"
_FOLLOWS_FROM_TWO_FIELDS = "it follows from `delegation` and `remote_signing` together; change them manually"
_ROLE_OUTSIDE_THE_CATALOG = "an IAM role outside the catalog, which no warehouse refers to"


def build_delete_profile(soft_delete_days: int | None) -> Mapping[str, Any]:
    """Return the delete profile: the effect of dropping a table."""
    if soft_delete_days is None:
        return {"type": "hard"}
    return {"type": "soft", "expiration_seconds": soft_delete_days * _SECONDS_PER_DAY}


def find_data_deletion(deletion: WarehouseDeletion) -> Deletion:
    """Return what happens to the objects of a warehouse that is no longer declared."""
    return "retain" if deletion == "archive" else deletion


def count_days(delay: str | None) -> int | None:
    """Return the days of a delay, such as `90d`."""
    return None if delay is None else parse_duration(delay).days


def _check_delay(delay: str) -> str:
    try:
        duration = parse_duration(delay)
    except ValueError:
        duration = timedelta()
    if duration.days < 1 or duration.seconds:
        raise ValueError("expected whole days or weeks, at least one day, such as `90d` or `12w`")
    return delay


PurgeDelay = Annotated[
    str, AfterValidator(_check_delay), WithJsonSchema({"type": "string", "pattern": r"^\d{1,5}[dwh]$"})
]
"""Time between the archiving of a warehouse and its purge."""


def _read_soft_delete_days(profile: Mapping[str, Any] | None) -> int | None:
    if not profile or profile.get("type") != "soft":
        return None
    seconds = int(profile["expiration_seconds"])
    days, remainder = divmod(seconds, _SECONDS_PER_DAY)
    if remainder or not 1 <= days <= _MAX_SOFT_DELETE_DAYS:
        raise NotExpressibleError(
            f"dropped tables expire after {seconds} seconds;"
            f" `soft_delete_days` counts whole days from 1 to {_MAX_SOFT_DELETE_DAYS}"
        )
    return days


def _read_key_prefix(prefix: str | None) -> str:
    if stripped := (prefix or "").strip("/"):
        return stripped
    raise NotExpressibleError(
        "it uses a whole bucket; a warehouse of a spec has a `key_prefix`, so that other warehouses fit beside it"
    )


def _is_signed(profile: Mapping[str, Any]) -> bool:
    return profile.get("type", "s3") == "s3" and profile.get("remote_signing_enabled") is not False


def _read_delegation(profile: Mapping[str, Any]) -> str:
    if profile.get("sts_enabled"):
        return "vended"
    if _is_signed(profile):
        return "remote-signing"
    raise NotExpressibleError(
        "it neither vends credentials nor signs requests; specs have `delegation: vended` or `remote-signing`"
    )


def _read_remote_signing(profile: Mapping[str, Any]) -> bool:
    return bool(profile.get("sts_enabled")) and _is_signed(profile)


def _has_all_format_versions(versions: list[int] | None) -> bool:
    return not versions or set(versions) >= _ALL_FORMAT_VERSIONS


def _read_namespaces(paths: list[str]) -> Any:
    """Return the field for the namespaces of a warehouse. A parent follows from its children."""
    leaves = [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]
    preset = match_preset(paths)
    if preset is None:
        return leaves
    also = [path for path in leaves if path not in PRESETS[preset]]
    return {"preset": preset} | ({"also": also} if also else {})


def _read_task_queues(queues: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: {key: value for key, value in settings.items() if value not in (None, {})}
        for name, settings in queues.items()
    }


class WarehouseSpec(StrictModel):
    """One warehouse: a prefix of a storage, with a role that reaches that prefix alone."""

    refused_properties: ClassVar[Mapping[str, str]] = {
        "active": "the spec cannot declare an inactive warehouse: activate it, or let `up --refresh` do it",
        "credential": _CREDENTIAL_IS_HIDDEN,
        "credential_fingerprint": _CREDENTIAL_IS_HIDDEN,
    }
    """Properties of `Warehouse` that the spec leaves out on purpose, with what `drift --accept` says."""

    name: Annotated[
        CatalogName,
        Sets(
            "name",
            refusal="the warehouse was renamed outside the stack: rename it in the spec with `renamed_from`, or rename"
            " it back",
        ),
    ]
    renamed_from: Annotated[CatalogName | None, NoWayBack("servers do not keep earlier names")] = None
    """Earlier name in this spec. The warehouse is renamed in place and keeps its key prefix and role."""
    storage: Annotated[
        str | None, NoWayBack("a name inside the spec; each storage backend reads its own fields from the profile")
    ] = None
    """Name of the storage; required if there are several."""
    owner: Annotated[Principal | None, NoWayBack("jobs check the owner; the server does not have it")] = None
    """Principal whose runs may write: `user:IDP~SUBJECT` or `role:NAME`. Principals with both `create` and `modify` on
    the warehouse or the project may write, too. Default: every run of the tenant."""
    key_prefix: Annotated[
        Annotated[S3KeyPrefix, Field(min_length=1)] | None,
        Sets(
            "storage.key_prefix",
            from_live=_read_key_prefix,
            refusal="a warehouse keeps its key prefix; declare another warehouse instead",
        ),
    ] = None
    """Default: TENANT/WAREHOUSE, with the warehouse's first name."""
    namespaces: Annotated[Namespaces, Makes("Namespace", from_live=_read_namespaces)] = []
    soft_delete_days: Annotated[
        Annotated[int, Field(ge=1, le=_MAX_SOFT_DELETE_DAYS)] | None,
        Sets("delete_profile", to_args=build_delete_profile, from_live=_read_soft_delete_days),
    ] = None
    """Days during which a dropped table can be restored. Without it, dropping is final."""
    deletion: Annotated[
        WarehouseDeletion,
        Sets("deletion", to_args=find_data_deletion),
        NoWayBack("a decision about later deletions; the server does not have it"),
    ] = "protect"
    """Effect of a deletion while tables exist: `protect` refuses, `retain` keeps everything, `archive` keeps everything
    and makes it read-only, `purge` deletes it."""
    purge_after: Annotated[
        PurgeDelay | None,
        Sets("archive.purge_after_days", to_args=count_days),
        NoWayBack("a decision about later deletions; the server does not have it"),
    ] = None
    """Time from the archiving of the warehouse to its purge, such as `90d`. `lakewright expire` announces the purge for
    7 days. Default: an archived warehouse is never purged."""
    adopt: Annotated[
        Adoption, Sets("adopt", to_args=bool), NoWayBack("it applies only while the stack takes the warehouse over")
    ] = False
    """Adopt an existing warehouse of this name with its namespaces, its declared tables and views, and its IAM
    roles. In a project of the tenant's own, the declared roles of the project, too. `{until: DAY}` permits it for a
    time."""
    protected: Annotated[bool, Sets("protected")] = False
    """Lakekeeper's protection: the warehouse cannot be deleted without force."""
    format_versions: Annotated[
        Annotated[list[FormatVersion], Field(min_length=1)] | None,
        Sets("allowed_format_versions", is_usual=_has_all_format_versions),
    ] = None
    """Allowed versions of the Iceberg table format. Default: all that the server supports."""
    delegation: Annotated[
        Literal["vended", "remote-signing"],
        Sets(
            "storage.sts_enabled",
            to_args=lambda delegation: delegation == "vended",
            from_live=_read_delegation,
            reads="storage",
            refusal=_FOLLOWS_FROM_TWO_FIELDS,
        ),
    ] = "vended"
    """How clients access storage: with short-lived credentials for one table, or with requests that the catalog signs,
    on S3 only."""
    remote_signing: Annotated[
        bool,
        Sets(
            "storage.remote_signing_enabled",
            from_live=_read_remote_signing,
            reads="storage",
            refusal=_FOLLOWS_FROM_TWO_FIELDS,
        ),
    ] = False
    """Whether Lakekeeper also signs requests of clients that ask for it, besides vending credentials."""
    session_tags: Annotated[
        dict[str, str], Sets("storage.sts_session_tags", to_args=lambda tags: dict(tags) or None)
    ] = {}
    """Session tags of the catalog's role sessions, for the tenant's own policies."""
    token_seconds: Annotated[
        Annotated[int, Field(ge=900, le=43200)] | None,
        Sets("storage.sts_token_validity_seconds", is_usual=lambda seconds: seconds == _USUAL_TOKEN_SECONDS),
    ] = None
    """Lifetime of vended credentials, in seconds. Default: 3600. AWS allows more only if Lakekeeper runs as an IAM
    user: sessions that another role opens last an hour at most."""
    vending_role: Annotated[bool, NoWayBack("the stack makes this role; it cannot take over another role")] = False
    """Whether Lakekeeper vends credentials with a role of its own, apart from the role of its own access."""
    maintenance_role: Annotated[TrustedPrincipal | None, NoWayBack(_ROLE_OUTSIDE_THE_CATALOG)] = None
    """Principal that gets a role for maintenance outside the catalog: it lists all files and versions of the warehouse,
    reads and deletes files, and cannot delete versions."""
    shares: Annotated[dict[ShareName, ShareSpec], NoWayBack(_ROLE_OUTSIDE_THE_CATALOG)] = {}
    """Consumers outside the catalog, each with a role that reads the warehouse's files."""
    lifecycle: Annotated[
        PrefixLifecycle | None, NoWayBack("a rule of the bucket's lifecycle, which covers all its warehouses")
    ] = None
    """Lifecycle of the warehouse's objects. Default: that of the storage."""
    task_queues: Annotated[dict[QueueName, QueueSettings], Makes("TaskQueueConfig", from_live=_read_task_queues)] = {}
    """Settings of Lakekeeper's task queues, by name. Settings of `maintenance.server` are not repeated here. Lakekeeper
    keeps its own settings for other queues."""
    limits: Annotated[WarehouseLimitsSpec | None, NoWayBack("rules about data, evaluated outside the server")] = None
    """Limits of the warehouse and of its namespaces."""

    @property
    def data_deletion(self) -> Deletion:
        """Effect on the objects of the warehouse when it is no longer declared."""
        return find_data_deletion(self.deletion)

    @property
    def is_archived(self) -> bool:
        """Whether the warehouse becomes read-only when it is no longer declared."""
        return self.deletion == "archive"

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
