"""Privileges, principals and objects of grants. Pure: makes no calls."""

from dataclasses import dataclass
from typing import Literal

ObjectKind = Literal["server", "project", "warehouse", "namespace", "table", "view", "generic-table", "role", "tag"]
PrincipalKind = Literal["user", "role"]

ASSIGNEE = "assignee"
"""The relation of members to their role. Servers store membership as a grant of this privilege."""

_ON_TABLES = ("ownership", "pass_grants", "manage_grants", "describe", "select", "modify", "manage_tags")
_ON_NAMESPACES = ("ownership", "pass_grants", "manage_grants", "describe", "select", "create", "modify", "manage_tags")

RELATIONS: dict[ObjectKind, tuple[str, ...]] = {
    "server": ("admin", "operator"),
    "project": (
        "project_admin",
        "security_admin",
        "data_admin",
        "role_creator",
        "describe",
        "select",
        "create",
        "modify",
        "tag_creator",
    ),
    "warehouse": _ON_NAMESPACES,
    "namespace": _ON_NAMESPACES,
    "table": _ON_TABLES,
    "view": _ON_TABLES,
    "generic-table": _ON_TABLES,
    "role": (ASSIGNEE, "ownership"),
    "tag": ("ownership", "apply"),
}
"""Privileges in OpenFGA's model of Lakekeeper by kind of object, in the newest version."""

OWNERS: dict[ObjectKind, frozenset[str]] = {
    "server": frozenset({"admin", "operator"}),
    "project": frozenset({"project_admin"}),
    **dict.fromkeys(
        ("warehouse", "namespace", "table", "view", "generic-table", "role", "tag"), frozenset({"ownership"})
    ),
}
"""Privileges that the server grants to the creator of an object, or to the user who bootstraps the server."""


@dataclass(frozen=True)
class Object:
    """The object of a grant, by the server's ids."""

    kind: ObjectKind
    object_id: str = ""
    """Id of a namespace, table, view, generic table, role or tag."""
    project_id: str | None = None
    """Its project; None for the server itself."""
    warehouse_id: str = ""

    @property
    def identity(self) -> str:
        """Return the server's id of the object; empty for the server itself. A recreated object has another id."""
        return self.object_id or self.warehouse_id or self.project_id or ""


@dataclass(frozen=True, order=True)
class GrantEntry:
    """A privilege of a user or role. The object is known from the context."""

    privilege: str
    kind: PrincipalKind
    principal: str
    """Id of the user, or of the role."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{self.privilege} of {self.kind} {self.principal}"


def format_entries(entries: frozenset[GrantEntry] | set[GrantEntry]) -> str:
    """Return the entries as text for messages."""
    return ", ".join(str(entry) for entry in sorted(entries)) or "nothing"
