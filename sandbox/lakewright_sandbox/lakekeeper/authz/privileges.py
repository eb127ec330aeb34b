"""The grantable privileges by kind of object: OpenFGA's relations, or the catalog's actions under allow-all."""

from __future__ import annotations

from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS, READ_GRANTS
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import select_actions, select_relations

_OBJECT = ["ownership", "pass_grants", "manage_grants", "describe", "select", "create", "modify", "manage_tags"]
_TABULAR = [name for name in _OBJECT if name != "create"]

RELATIONS = {
    "server": ["admin", "operator"],
    "project": [
        "project_admin",
        "security_admin",
        "data_admin",
        "role_creator",
        "tag_creator",
        "describe",
        "select",
        "create",
        "modify",
    ],
    "warehouse": _OBJECT,
    "namespace": _OBJECT,
    "table": _TABULAR,
    "view": _TABULAR,
    "generic-table": _TABULAR,
    "tag-definition": ["ownership", "apply"],
    "role": ["assignee", "ownership"],
}
GRANTABLE = ("server", "project", "warehouse", "namespace", "table", "view", "generic-table", "tag-definition")

CATEGORIES = {
    "administration": (
        *("admin", "operator", "project_admin", "security_admin", "data_admin", "role_creator", "tag_creator"),
    ),
    "security": ("ownership", "pass_grants", "manage_grants"),
    "metadata": ("manage_tags", "describe"),
    "read": ("select",),
    "create": ("create",),
    "write": ("modify", "apply"),
}
DESCRIPTIONS = {
    "admin": "Administer the server, and take the right to administer any project.",
    "operator": "Use every API without limits; for machines that provision resources.",
    "project_admin": "Control the project in full.",
    "security_admin": "Manage grants, ownership and roles of the project, without access to its data.",
    "data_admin": "Manage the project's warehouses and what is in them, without granting anything.",
    "role_creator": "Create roles in the project.",
    "tag_creator": "Create tag definitions in the project.",
    "ownership": "Own the object, which includes every right to it.",
    "pass_grants": "Grant others the privileges that one holds oneself.",
    "manage_grants": "Grant and revoke every privilege on the object and on all beneath it.",
    "manage_tags": "Attach tags to the object and to all beneath it.",
    "describe": "Read the object's metadata.",
    "select": "Read the object's data.",
    "create": "Create objects inside this object.",
    "modify": "Change the object and its contents.",
    "apply": "Attach the tag to what one may tag.",
}


def grantable_privileges(settings: Settings, kind: str) -> list[str]:
    """Return the privileges that can be granted on a kind of object."""
    if settings.openfga:
        return list_relations(settings, kind)
    return [name for name in select_actions(settings.version, kind, ACTIONS[kind]) if name != READ_GRANTS]


def list_relations(settings: Settings, kind: str) -> list[str]:
    """Return the relations of the permissions API that the version has."""
    return select_relations(settings.version, kind, RELATIONS[kind])


def privilege_to_json(settings: Settings, kind: str, name: str) -> dict[str, str | None]:
    """Return a privilege as the API describes it. Under allow-all there is no description or category."""
    category = next((label for label, names in CATEGORIES.items() if name in names), None) if settings.openfga else None
    return {
        "name": name,
        "display-name": name.replace("_", " "),
        "description": DESCRIPTIONS.get(name) if settings.openfga else None,
        "category": category,
        "resource-type": kind,
    }
