"""Grants of a spec: privilege, principal and target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from lakewright.field_map.marks import NoWayBack, Sets
from lakewright.lakekeeper.api.connection.privileges import RELATIONS
from lakewright.names.grant_names import Principal, TableInWarehouse
from lakewright.names.table_name import parse_parts, quote
from lakewright.names.types import NamespacePath
from lakewright.validation.moment import EndText, format_moment, parse_end
from lakewright.validation.strict_model import StrictModel

Privilege = Literal[
    "ownership",
    "pass_grants",
    "manage_grants",
    "manage_tags",
    "describe",
    "select",
    "create",
    "modify",
    "project_admin",
    "security_admin",
    "data_admin",
    "role_creator",
    "tag_creator",
]


class GrantTarget(StrictModel):
    """The target of a grant: the project, a warehouse, or a namespace or table in it."""

    project: Literal[True] | None = None
    warehouse: str | None = None
    namespace: NamespacePath | None = None
    table: TableInWarehouse | None = None
    """NAMESPACE.TABLE in the warehouse; quote a part that contains a dot."""

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.project is None) == (self.warehouse is None):
            raise ValueError("expected `project: true` or a `warehouse`, optionally with a `namespace` or `table`")
        if self.project and (self.namespace or self.table):
            raise ValueError("expected a `warehouse` with a namespace or table")
        if self.namespace and self.table:
            raise ValueError("expected `namespace` or `table`, not both")
        return self

    @property
    def kind(self) -> Literal["project", "warehouse", "namespace", "table"]:
        """Kind of the target."""
        if self.project:
            return "project"
        return "table" if self.table else "namespace" if self.namespace else "warehouse"

    @property
    def table_path(self) -> tuple[str, str]:
        """Namespace and name of the table."""
        *namespace, name = parse_parts(self.table or "")
        return ".".join(namespace), name

    def build_target(self) -> dict[str, Any]:
        """Return the target in the fields of the provider, without the ids of project and warehouse."""
        target: dict[str, Any] = {"type": self.kind}
        if self.namespace:
            target["namespace"] = self.namespace
        if self.table:
            target["namespace"], target["name"] = self.table_path
        return target

    def __str__(self) -> str:
        """Return kind and name."""
        inside = self.table or self.namespace
        full_name = f"{self.warehouse}.{inside}" if inside else self.warehouse
        return f"{self.kind} {full_name}" if full_name else self.kind


def find_principal(to: str, kind: Literal["user", "role"]) -> str | None:
    """Return the name of a principal if it is of this kind, else None."""
    principal_kind, _, name = to.partition(":")
    return name if principal_kind == kind else None


def _read_target(target: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live target, with the name of its warehouse and the levels inside it, as a spec has it."""
    if not target["warehouse"]:
        return {"project": True}
    on: dict[str, Any] = {"warehouse": target["warehouse"]}
    if target["type"] == "namespace":
        on["namespace"] = ".".join(target["inside"])
    if target["type"] == "table":
        on["table"] = ".".join(quote(level) for level in target["inside"])
    return on


def _format_end(until: str | None) -> str | None:
    return until and format_moment(parse_end(until))


class GrantSpec(StrictModel):
    """A privilege of a user or role."""

    to: Annotated[
        Principal,
        Sets("user", to_args=lambda to: find_principal(to, "user"), reads="principal"),
        Sets("role", to_args=lambda to: find_principal(to, "role"), reads="principal"),
    ]
    """`user:IDP~SUBJECT`, or `role:NAME`: a role of the tenant's project, which is created if needed."""
    privilege: Annotated[Privilege, Sets("privilege")]
    """A relation of Lakekeeper's authorization model (OpenFGA)."""
    on: Annotated[GrantTarget, Sets("on", to_args=GrantTarget.build_target, from_live=_read_target)]
    until: Annotated[
        EndText | None, Sets("until", to_args=_format_end), NoWayBack("the server does not keep ends of grants")
    ] = None
    """Last day of the grant, in UTC, or a time with its zone. Then `up` and `lakewright expire` revoke it."""

    @model_validator(mode="after")
    def _check_privilege(self) -> Self:
        privileges = RELATIONS[self.on.kind]
        if self.privilege not in privileges:
            raise ValueError(
                f"`{self.privilege}` cannot be granted on a {self.on.kind}; expected one of {', '.join(privileges)}"
            )
        return self

    def resource_name(self, tenant: str) -> str:
        """Return the name of the grant's resource in the stack of a tenant."""
        return f"{tenant}-{self.to.replace(':', '-')}-{self.privilege}-{str(self.on).replace(' ', '-')}"

    @property
    def role(self) -> str | None:
        """Name of the role that gets the privilege; None for a user."""
        return find_principal(self.to, "role")

    @property
    def user(self) -> str | None:
        """ID of the user who gets the privilege; None for a role."""
        return find_principal(self.to, "user")
