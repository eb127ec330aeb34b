"""Identities that a spec names: OAuth2 clients of units and jobs, and members of roles."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Self

from pydantic import Discriminator, Field, Tag, model_validator

from lakewright.credentials.references import Reference
from lakewright.field_map.marks import NoWayBack, Sets
from lakewright.names.types import NotBlank, UserId
from lakewright.validation.moment import EndText, parse_end
from lakewright.validation.strict_model import StrictModel

_UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class JobsSecret(StrictModel):
    """A key of a Kubernetes Secret in the namespace of each tenant, which the stack does not make."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]


class IdentitySpec(StrictModel):
    """Identity of computing units and jobs at the catalog: an OAuth2 client, or a known Kubernetes ServiceAccount."""

    client_id: NotBlank | None = None
    """OAuth2 client of the tenant at the identity provider of the environment (`lakekeeper.jobs_auth`). Default: the
    environment's, if that contains `{tenant}`."""
    subject: Annotated[str, Field(min_length=1, max_length=127)] | None = None
    """Subject of the client's tokens: the claim `oid` or `sub`, as Lakekeeper is configured. Keycloak: id of the
    client's service account user. Entra: object id of the service principal, not of the application. Default: what
    `lakekeeper.jobs_subject` of the environment derives from the client's id."""
    client_secret: Reference | None = None
    """Reference to the client's secret for commands outside the cluster, such as `lakewright verify`. Pods read the
    Kubernetes Secret instead."""
    audience: NotBlank | None = None
    """Audience to request. Default: that of `lakekeeper.jobs_auth`."""
    scope: NotBlank | None = None
    """Scope to request. Default: that of `lakekeeper.jobs_auth`."""
    secret: JobsSecret | None = None
    """Kubernetes Secret with the client's secret, in the tenant's namespace. Default: `kubernetes.jobs_secret` of the
    environment."""
    service_account_uid: Annotated[str, Field(pattern=_UUID)] | None = None
    """`metadata.uid` of the ServiceAccount, for manifests that are rendered and applied outside the stack."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("expected `client_id` of an OAuth2 client, or `service_account_uid`")
        if self.service_account_uid and self.model_fields_set != {"service_account_uid"}:
            raise ValueError("expected either `service_account_uid` or the fields of an OAuth2 client, not both")
        return self


def _form(value: object) -> str:
    return "tag:list" if isinstance(value, list) else "tag:name"


def _choose_earlier(until: str, other: str | None) -> str:
    return until if other is None else min(until, other, key=parse_end)


GroupNames = Annotated[
    Annotated[NotBlank, Tag("tag:name")] | Annotated[list[NotBlank], Field(min_length=1), Tag("tag:list")],
    Discriminator(_form),
]


class EndingMember(StrictModel):
    """A user who is a member for a time."""

    user: UserId
    """ID of the user: `oidc~SUBJECT`."""
    until: EndText
    """Last day of the membership, in UTC, or a time with its zone."""


def _member_form(value: object) -> str:
    return "tag:ending" if isinstance(value, dict | EndingMember) else "tag:id"


Member = Annotated[
    Annotated[UserId, Tag("tag:id")] | Annotated[EndingMember, Tag("tag:ending")], Discriminator(_member_form)
]


class RoleMembersSpec(StrictModel):
    """Members of a role. Other members are drift and are removed."""

    users: Annotated[list[Member], Sets("users")] = []
    """Users by id: `oidc~SUBJECT`, or `{user: oidc~SUBJECT, until: DAY}` for a time."""
    group: Annotated[
        GroupNames | None, NoWayBack("the server has the members of a group as users; the directory has the group")
    ] = None
    """Groups of the environment's `directory`, by name, path (Keycloak) or id. Each `preview` and `up` reads their
    members."""
    until: Annotated[EndText | None, NoWayBack("the server does not keep ends of memberships")] = None
    """Last day of all these memberships, in UTC, or a time with its zone. Then `up` and `lakewright expire` remove
    the members. Users of computing units and jobs remain members."""

    @model_validator(mode="after")
    def _someone(self) -> Self:
        if not self.users and not self.groups:
            raise ValueError("expected `users`, `group`, or both")
        repeated = [user for user, count in Counter(user for user, _ in self.list_users()).items() if count > 1]
        if repeated:
            raise ValueError(f"expected each user once; {', '.join(repeated)} is listed again")
        return self

    def list_users(self) -> list[tuple[str, str | None]]:
        """Return the listed users, each with the end of the membership or None."""
        return [
            (member.user, _choose_earlier(member.until, self.until))
            if isinstance(member, EndingMember)
            else (member, self.until)
            for member in self.users
        ]

    @property
    def groups(self) -> list[str]:
        """Names of the groups."""
        return [self.group] if isinstance(self.group, str) else list(self.group or [])
