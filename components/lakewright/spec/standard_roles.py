"""The roles of a tenant: owner, writer, reader and maintainer of each warehouse, and who is in them. Pure.

The privileges are relations of Lakekeeper's OpenFGA model. A writer has no `modify` on the warehouse itself: with it,
a computing unit could change the warehouse's storage or delete it through the management API.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.names.grant_names import RoleKind
from lakewright.names.object_names import MAINTENANCE
from lakewright.names.types import namespace_parts
from lakewright.spec.grant import GrantSpec, GrantTarget, Privilege
from lakewright.spec.tenant import TenantSpec
from lakewright.spec.warehouse import WarehouseSpec

ON_WAREHOUSE: dict[RoleKind, tuple[Privilege, ...]] = {
    "owner": ("ownership",),
    "writer": ("select", "create"),
    "reader": ("select",),
    # Tables of namespaces that units make have no other way to get maintained.
    "maintainer": ("modify",),
}
"""Privileges of each role on its warehouse."""

ON_NAMESPACES: dict[RoleKind, tuple[Privilege, ...]] = {"writer": ("modify",)}
"""Privileges of each role on the declared namespaces of its warehouse."""


def name_role(warehouse: str, kind: RoleKind) -> str:
    """Return the name of a warehouse's role."""
    return f"{warehouse}-{kind}"


def standard_roles(spec: TenantSpec) -> list[str]:
    """Return the names of the roles of all warehouses; none if the spec turns them off."""
    if not spec.standard_roles:
        return []
    return [name_role(warehouse.name, kind) for warehouse in spec.warehouses for kind in ON_WAREHOUSE]


def standard_grants(spec: TenantSpec) -> list[GrantSpec]:
    """Return the grants of the roles, each on exactly its warehouse, in the form of the spec's own grants."""
    if not spec.standard_roles:
        return []
    return [grant for warehouse in spec.warehouses for grant in _grants_on(warehouse)]


def roles_of_unit(spec: TenantSpec, unit: str) -> list[str]:
    """Return the roles of a computing unit or of the maintenance job; none without standard roles."""
    if not spec.standard_roles:
        return []
    if unit == MAINTENANCE:
        return [name_role(name, "maintainer") for name in spec.warehouse_names]
    unit_spec = next(candidate for candidate in spec.computing_units if candidate.name == unit)
    return [name_role(name, "writer") for name in unit_spec.visible_warehouses(spec.warehouse_names)]


def list_role_names(spec: TenantSpec) -> list[str]:
    """Return the names of the standard roles and of the roles that `grants` name, which may repeat."""
    return [*standard_roles(spec), *(grant.role for grant in spec.grants if grant.role)]


def role_problems(spec: TenantSpec) -> Iterator[tuple[str, str]]:
    """Yield path and reason of each role without a grant in `role_members`, and of each end of a standard grant."""
    roles = list_role_names(spec)
    for name in spec.role_members:
        if name not in roles:
            yield (
                f"role_members.{name}",
                f"expected {', or one of '.join(_describe_roles(spec))}; nothing is granted to `{name}`",
            )
    lasting_grants = {_identify(grant) for grant in standard_grants(spec)}
    for index, grant in enumerate(spec.grants):
        if grant.until is not None and _identify(grant) in lasting_grants:
            yield (
                f"grants.{index}.until",
                f"expected no end: the standard role `{grant.role}` always has this grant. Remove the entry, and give"
                f" the members of the role an end, in `role_members.{grant.role}`",
            )


def _identify(grant: GrantSpec) -> tuple[str, ...]:
    """Return what identifies a grant on a server, which ignores case in the names of namespaces and tables."""
    return grant.to, grant.privilege, grant.on.kind, str(grant.on).casefold()


def _describe_roles(spec: TenantSpec) -> Iterator[str]:
    yield "a role that `grants` names"
    if spec.standard_roles:
        yield ", ".join(standard_roles(spec))


def _grants_on(warehouse: WarehouseSpec) -> Iterator[GrantSpec]:
    for kind, privileges in ON_WAREHOUSE.items():
        to = f"role:{name_role(warehouse.name, kind)}"
        for privilege in privileges:
            yield GrantSpec(to=to, privilege=privilege, on=GrantTarget(warehouse=warehouse.name))
        for privilege in ON_NAMESPACES.get(kind, ()):
            for namespace in _outermost(warehouse):
                on = GrantTarget(warehouse=warehouse.name, namespace=namespace)
                yield GrantSpec(to=to, privilege=privilege, on=on)


def _outermost(warehouse: WarehouseSpec) -> list[str]:
    """Return the outermost of the declared namespaces: privileges on a namespace hold for the namespaces in it."""
    return [path for path in warehouse.namespace_paths if len(namespace_parts(path)) == 1]
