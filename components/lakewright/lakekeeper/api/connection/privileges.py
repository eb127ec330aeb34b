"""Who holds what, and on what: the words that grants are made of. Pure, apart from any way to ask a server."""

from dataclasses import dataclass
from typing import Literal

ObjectKind = Literal["server", "project", "warehouse", "namespace", "table", "view", "generic-table", "role", "tag"]
PrincipalKind = Literal["user", "role"]

ASSIGNEE = "assignee"
"""The relation of a role's members to the role: membership, told by a grant's word."""

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
"""What OpenFGA's model of Lakekeeper knows on each kind of object, in the newest version."""

OWNERS: dict[ObjectKind, frozenset[str]] = {
    "server": frozenset({"admin", "operator"}),
    "project": frozenset({"project_admin"}),
    **dict.fromkeys(
        ("warehouse", "namespace", "table", "view", "generic-table", "role", "tag"), frozenset({"ownership"})
    ),
}
"""What the server gives to whoever makes an object (or bootstraps it): without it, nobody might manage the object."""


@dataclass(frozen=True)
class Object:
    """What a grant is on, by the ids of the server."""

    kind: ObjectKind
    object_id: str = ""
    """Of a namespace, table, view, generic table, role or tag."""
    project_id: str | None = None
    """Its project; None for the server itself."""
    warehouse_id: str = ""

    @property
    def identity(self) -> str:
        """The server's id of the object; empty for the server itself. An object made again has another."""
        return self.object_id or self.warehouse_id or self.project_id or ""


@dataclass(frozen=True, order=True)
class GrantEntry:
    """A privilege of somebody, on an object that is known from elsewhere."""

    privilege: str
    kind: PrincipalKind
    principal: str
    """Id of the user, or of the role."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{self.privilege} of {self.kind} {self.principal}"


def listed(held: frozenset[GrantEntry] | set[GrantEntry]) -> str:
    """As a message names them."""
    return ", ".join(str(one) for one in sorted(held)) or "nothing"
