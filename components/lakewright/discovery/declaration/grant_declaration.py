"""Derive the grants and role members of a spec from the objects of a project. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from lakewright.discovery.declaration.omission import Omission
from lakewright.discovery.listing.project_objects import FoundGrant, ProjectObjects
from lakewright.field_map.read_back import read_fields
from lakewright.lakekeeper.api.connection.privileges import OWNERS
from lakewright.spec import TenantSpec
from lakewright.spec.grant import GrantSpec
from lakewright.spec.identity import RoleMembersSpec
from lakewright.spec.standard_roles import standard_grants


@dataclass
class DeclaredAccess:
    """Grants and members as a spec has them."""

    grants: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    role_members: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    omissions: list[Omission] = field(default_factory=list[Omission])


def declare_access(
    project: ProjectObjects, warehouses: Set[str], namespaces: Set[str], tables: Set[str]
) -> DeclaredAccess:
    """Return the grants and members to declare.

    Args:
        project: The project.
        warehouses: Names of the declared warehouses.
        namespaces: Declared namespaces as WAREHOUSE.NAMESPACE.
        tables: Declared tables as WAREHOUSE.NAMESPACE.TABLE, the levels as the server has them.
    """
    access = DeclaredAccess()
    if not project.enforces_grants:
        access.omissions += _list_unenforced_roles(project)
        return access
    for grant in project.grants:
        reason = _find_grant_problem(project, grant, warehouses, namespaces, tables)
        if reason:
            access.omissions.append(Omission("grant", f"{grant.entry} on {grant.target}", reason))
        elif not _is_creator_ownership(project, grant):
            access.grants.append(_declare_grant(project, grant))
    granted = {
        str(grant["to"]).removeprefix("role:") for grant in access.grants if str(grant["to"]).startswith("role:")
    }
    for role_id, role in project.roles.items():
        _add_role(access, project, role_id, str(role["name"]), granted)
    return access


def find_standard_grants(spec: TenantSpec) -> list[int] | None:
    """Return the positions of the grants that the standard roles include; None if a standard grant is missing."""
    standard = standard_grants(spec)
    if any(grant not in spec.grants for grant in standard):
        return None
    return [index for index, grant in enumerate(spec.grants) if grant in standard]


def _list_unenforced_roles(project: ProjectObjects) -> Iterator[Omission]:
    why = f"the server enforces no grants (authorizer `{project.server.authz_backend}`), so roles have no effect"
    for role in project.roles.values():
        yield Omission("role", str(role["name"]), why)


def _find_grant_problem(
    project: ProjectObjects, grant: FoundGrant, warehouses: Set[str], namespaces: Set[str], tables: Set[str]
) -> str:
    """Return why a spec cannot have a grant; empty if it can."""
    object_name = ".".join((grant.warehouse, *grant.inside))
    declared_names = {"project": {""}, "warehouse": warehouses, "namespace": namespaces, "table": tables}
    if object_name not in declared_names[grant.on.kind]:
        return f"the spec does not have this {grant.on.kind}"
    if grant.entry.kind == "role" and project.role_name(grant.entry.principal) is None:
        return "the role belongs to another project, or cannot be seen"
    if grant.on.kind in {"namespace", "table"} and _is_owner(grant) and not _is_creator_ownership(project, grant):
        return "the server makes each creator the owner; the ownership remains as it is"
    return ""


def _is_owner(grant: FoundGrant) -> bool:
    return grant.entry.privilege in OWNERS[grant.on.kind]


def _is_creator_ownership(project: ProjectObjects, grant: FoundGrant) -> bool:
    """Return whether the server granted ownership to the identity that reads, which creates the stack's objects."""
    return _is_owner(grant) and grant.entry.kind == "user" and grant.entry.principal == project.identity


def _declare_grant(project: ProjectObjects, grant: FoundGrant) -> dict[str, Any]:
    entry = grant.entry
    name = entry.principal if entry.kind == "user" else project.role_name(entry.principal)
    live = {
        "principal": f"{entry.kind}:{name}",
        "privilege": entry.privilege,
        "on": {"type": grant.on.kind, "warehouse": grant.warehouse, "inside": grant.inside},
    }
    return read_fields(GrantSpec, live)


def _add_role(access: DeclaredAccess, project: ProjectObjects, role_id: str, name: str, granted: Set[str]) -> None:
    role_members = sorted(project.members.get(role_id, frozenset()))
    nested = [member for kind, member in role_members if kind == "role"]
    if name not in granted:
        reason = "no declared grant names it, so a spec would not make it; it remains as it is"
        access.omissions.append(Omission("role", name, reason))
    elif nested:
        names = ", ".join(project.role_name(member) or member for member in nested)
        reason = f"roles are members of it ({names}); specs have users only, so its members remain as they are"
        access.omissions.append(Omission("member", name, reason))
    elif role_members:
        access.role_members[name] = read_fields(RoleMembersSpec, {"users": [member for _, member in role_members]})
