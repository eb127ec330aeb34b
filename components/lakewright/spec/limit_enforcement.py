"""The grants that enforcement of limits suspends, and the limited parts of a tenant that decide about each. Pure.

A grant is suspended if it holds in a part whose limit is reached: it is a grant on the part, on something in the part,
or on the warehouse or project around it. Only `create` and `modify` are suspended: owners and administrators can still
delete data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright.names.grant_names import RoleKind
from lakewright.names.types import namespace_parts
from lakewright.ownership.limit_mark import format_limited_part
from lakewright.spec.grant import GrantSpec, GrantTarget
from lakewright.spec.limits import LimitsSpec
from lakewright.spec.standard_roles import name_role
from lakewright.spec.tenant import TenantSpec

_WRITING = frozenset({"create", "modify"})
_MAINTAINER: RoleKind = "maintainer"


def list_limited_parts(tenant: TenantSpec, grant: GrantSpec) -> list[str]:
    """Return the parts of a tenant with an enforced limit, whose limits suspend a grant when they are reached."""
    if grant.privilege not in _WRITING or _is_maintainer(tenant, grant):
        return []
    return [part for part, on, limits in _list_enforced(tenant) if grant.to not in limits.exempt and _holds(grant, on)]


def list_unenforceable_parts(tenant: TenantSpec, grants: Sequence[GrantSpec]) -> list[str]:
    """Return the parts with an enforced limit in which no grant can be suspended."""
    limited_parts = {part for grant in grants for part in list_limited_parts(tenant, grant)}
    return [part for part, _, _ in _list_enforced(tenant) if part not in limited_parts]


def _list_enforced(tenant: TenantSpec) -> Iterator[tuple[str, GrantTarget, LimitsSpec]]:
    """Yield name, object and limits of each part whose limits are enforced."""
    if tenant.limits and tenant.limits.enforce and tenant.limits.limits_data:
        yield format_limited_part(), GrantTarget(project=True), tenant.limits
    for warehouse in tenant.warehouses:
        if warehouse.limits is None:
            continue
        if warehouse.limits.enforce:
            yield format_limited_part(warehouse.name), GrantTarget(warehouse=warehouse.name), warehouse.limits
        for namespace, limits in warehouse.limits.namespaces.items():
            if limits.enforce:
                on = GrantTarget(warehouse=warehouse.name, namespace=namespace)
                yield format_limited_part(warehouse.name, namespace), on, limits


def _is_maintainer(tenant: TenantSpec, grant: GrantSpec) -> bool:
    return tenant.standard_roles and grant.role in {name_role(name, _MAINTAINER) for name in tenant.warehouse_names}


def _holds(grant: GrantSpec, part: GrantTarget) -> bool:
    """Return whether a grant allows anything in a part."""
    if grant.on.project or part.project:
        return True
    if grant.on.warehouse != part.warehouse:
        return False
    granted, limited = _list_levels(grant.on), _list_levels(part)
    is_inside = granted[: len(limited)] == limited
    return is_inside or (grant.on.table is None and limited[: len(granted)] == granted)


def _list_levels(on: GrantTarget) -> list[str]:
    """Return the levels of the namespace of an object, in lower case, as the server ignores case."""
    namespace = on.table_path[0] if on.table else on.namespace
    return [level.casefold() for level in namespace_parts(namespace)] if namespace else []
