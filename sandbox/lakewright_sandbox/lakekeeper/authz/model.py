"""The rules of Lakekeeper's authorization model: which relations follow from which.

Source: Lakekeeper's OpenFGA model 4.9 (Apache-2.0), without actions that equal a relation, which are in `actions.py`. A
relation holds if one of its terms does:

- `DIRECT`: it was granted on the object itself
- a name: that relation on the same object
- `^name`: that relation on the object's parent
- `Both`: both relations on the same object; `Unless`: the first without the second
- `INSIDE`: the subject can describe something inside the object
- `SELF`: the object is the subject; `ANYONE`: the subject is authenticated
"""

from __future__ import annotations

from typing import NamedTuple

DIRECT, INSIDE, SELF, ANYONE = "direct", "inside", "self", "anyone"


class Both(NamedTuple):
    """Two relations that must hold together."""

    first: str
    second: str


class Unless(NamedTuple):
    """A relation that holds only without another."""

    required: str
    forbidding: str


Term = str | Both | Unless
Rules = dict[str, tuple[Term, ...]]

PASSABLE = ("create", "describe", "modify", "select")


def _build_granting_rules(*privileges: str) -> Rules:
    """Return the rules for granting: `manage_grants` allows everything, `pass_grants` what the subject has."""
    rules: Rules = {}
    for name in privileges:
        passed = (Both(name, "pass_grants"),) if name in PASSABLE else ()
        rules[f"grant_{name}"] = ("manage_grants", *passed)
    return rules | {"read_assignments": ("manage_grants", Both("describe", "pass_grants"))}


SERVER: Rules = {
    "admin": (DIRECT,),
    "operator": (DIRECT,),
    "manager": ("admin", "operator"),
    "read_assignments": ("manager",),
    "grant_admin": ("manager",),
    "grant_operator": ("manager",),
}
PROJECT: Rules = {
    "project_admin": (DIRECT, "^operator"),
    "security_admin": (DIRECT, "project_admin"),
    "data_admin": (DIRECT, "project_admin"),
    "role_creator": (DIRECT, "security_admin"),
    "tag_creator": (DIRECT, "security_admin"),
    "describe": (DIRECT, "select", "create", "data_admin", "security_admin"),
    "select": (DIRECT, "modify"),
    "create": (DIRECT, "data_admin"),
    "modify": (DIRECT, "project_admin"),
    "visible": ("describe", INSIDE, "^admin"),
    "get_tasks": ("describe", "^admin"),
    "control_tasks": ("modify", "^admin"),
    "read_assignments": ("security_admin", "^admin"),
    "grant_project_admin": ("project_admin", "^admin"),
    **{
        f"grant_{name}": ("security_admin", "^admin")
        for name in ("security_admin", "data_admin", "role_creator", "tag_creator", *PASSABLE)
    },
}
_OBJECT: Rules = {
    "ownership": (DIRECT,),
    "pass_grants": (DIRECT,),
    "accept_moved_namespace": (Both("manage_grants", "create"),),
    "move": (Both("manage_grants", "modify"),),
    "set_managed_access": ("manage_grants",),
}
WAREHOUSE: Rules = {
    **_OBJECT,
    **_build_granting_rules("ownership", "pass_grants", "manage_grants", "manage_tags", *PASSABLE),
    "managed_access": (DIRECT,),
    "managed": ("managed_access",),
    "manage_grants": (DIRECT, "ownership", "^security_admin"),
    "describe": (DIRECT, "ownership", "select", "create", "^describe"),
    "select": (DIRECT, "ownership", "modify", "^select"),
    "create": (DIRECT, "ownership", "^create"),
    "modify": (DIRECT, "ownership", "^modify", "^data_admin"),
    "manage_tags": (DIRECT, "^security_admin"),
    "visible": ("describe", INSIDE),
}
NAMESPACE: Rules = {
    **_OBJECT,
    **_build_granting_rules("ownership", "pass_grants", "manage_grants", "manage_tags", *PASSABLE),
    "managed_access": (DIRECT,),
    "managed": ("managed_access", "^managed"),
    "manage_grants": (DIRECT, Unless("ownership", "^managed"), "^manage_grants"),
    "describe": (DIRECT, "ownership", "select", "create", "^describe"),
    "select": (DIRECT, "ownership", "modify", "^select"),
    "create": (DIRECT, "ownership", "^create"),
    "modify": (DIRECT, "ownership", "^modify"),
    "manage_tags": (DIRECT, "^manage_tags"),
    "visible": ("describe", INSIDE),
}
TABULAR: Rules = {
    **_build_granting_rules("ownership", "pass_grants", "manage_grants", "manage_tags", "describe", "modify", "select"),
    "ownership": (DIRECT,),
    "pass_grants": (DIRECT,),
    "manage_grants": (DIRECT, Unless("ownership", "^managed"), "^manage_grants"),
    "describe": (DIRECT, "ownership", "select", "^describe"),
    "select": (DIRECT, "ownership", "modify", "^select"),
    "modify": (DIRECT, "ownership", "^modify"),
    "manage_tags": (DIRECT, "^manage_tags"),
    "visible": ("describe",),
}
TAG: Rules = {
    "ownership": (DIRECT,),
    "apply": (DIRECT, "ownership"),
    "grant_apply": ("ownership", "^security_admin"),
    "grant_ownership": ("grant_apply",),
    "read_assignments": ("grant_apply",),
    "visible": ("apply", "^visible"),
}
ROLE: Rules = {
    "ownership": (DIRECT,),
    "assignee": (DIRECT, "ownership"),
    "grant_assignee": ("ownership", "^security_admin"),
    "grant_ownership": ("grant_assignee",),
    "visible": ("^visible",),
    "read_assignments": ("^visible",),
    "anyone": (ANYONE,),
}
USER: Rules = {
    "anyone": (ANYONE,),
    "self_or_manager": (SELF, "^manager"),
}

RULES = {
    "server": SERVER,
    "project": PROJECT,
    "warehouse": WAREHOUSE,
    "namespace": NAMESPACE,
    "table": TABULAR,
    "view": TABULAR,
    "generic-table": TABULAR,
    "tag-definition": TAG,
    "role": ROLE,
    "user": USER,
}
