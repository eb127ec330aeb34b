"""A tenant's roles and grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from lakewright.environment.platform import Platform
from lakewright.field_map.arguments import build_args
from lakewright.lakekeeper import Grant, Role, Table
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.spec import TenantSpec
from lakewright.spec.grant import GrantSpec
from lakewright.spec.limit_enforcement import list_limited_parts, list_unenforceable_parts
from lakewright.spec.standard_roles import ON_WAREHOUSE, name_role
from lakewright.tenant.warehouse import TenantWarehouse
from lakewright.validation.moment import has_ended


def make_roles(
    tenant: TenantSpec,
    platform: Platform,
    names: Sequence[str],
    *,
    project_id: pulumi.Input[str],
    record: TenantRecord,
    opts: pulumi.ResourceOptions,
) -> dict[str, Role]:
    """Make the roles of these names. In a shared project, the description of each role is the stack's mark."""
    description = record.mark_description() if tenant.shares_project else None
    earlier = _map_earlier_roles(tenant)
    roles: dict[str, Role] = {}
    for name in names:
        role_opts = pulumi.ResourceOptions(
            retain_on_delete=any(w.data_deletion == "retain" for w in tenant.warehouses),
            aliases=[pulumi.Alias(name=f"{tenant.name}-{earlier[name]}")] if name in earlier else None,
        )
        roles[name] = Role(
            f"{tenant.name}-{name}",
            server=platform.server,
            project_id=project_id,
            name=tenant.qualify_role(name),
            description=description,
            adopt=tenant.adopts_roles,
            opts=pulumi.ResourceOptions.merge(opts, role_opts),
        )
    return roles


def make_grants(
    tenant: TenantSpec,
    platform: Platform,
    grants: Sequence[GrantSpec],
    *,
    role_ids: Mapping[str, pulumi.Input[str]],
    project_id: pulumi.Input[str],
    warehouses: dict[str, TenantWarehouse],
    tables: Sequence[Table],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Make the grants that have not ended. A grant is made after its warehouse and revoked before that is deleted."""
    for part in list_unenforceable_parts(tenant, grants):
        pulumi.log.warn(
            f"limits of {part} are not enforced: only exempt principals have declared grants of `create` or `modify`"
            " in it. Declare the writers' grants in `grants`, or remove `enforce`."
        )
    resources: list[pulumi.Resource] = []
    for grant in grants:
        if has_ended(grant.until, platform.now):
            continue
        warehouse = warehouses.get(grant.on.warehouse or "")
        earlier_grant = _find_earlier_grant(tenant, grant)
        args = build_args(grant)
        args["on"] |= {"warehouse_id": warehouse.warehouse_id} if warehouse else {"project_id": project_id}
        if grant.role:
            args["role"] = role_ids[grant.role]
        if parts := list_limited_parts(tenant, grant):
            args["limited_by"] = {"project_id": project_id, "parts": parts}
        grant_opts = pulumi.ResourceOptions(
            depends_on=[*([warehouse] if warehouse else []), *(tables if grant.on.table else [])],
            # A grant that outlives the stack would never end.
            retain_on_delete=grant.until is None and _is_retained(tenant, grant),
            aliases=[pulumi.Alias(name=earlier_grant.resource_name(tenant.name))] if earlier_grant else None,
        )
        resources.append(
            Grant(
                grant.resource_name(tenant.name),
                server=platform.server,
                **args,
                opts=pulumi.ResourceOptions.merge(opts, grant_opts),
            )
        )
    return resources


def _find_earlier_grant(tenant: TenantSpec, grant: GrantSpec) -> GrantSpec | None:
    """Return the grant as it was before its warehouse was renamed; None if it was not."""
    earlier = tenant.find_earlier_name(grant.on.warehouse or "")
    if earlier is None:
        return None
    role = _map_earlier_roles(tenant).get(grant.role or "")
    to = f"role:{role}" if role else grant.to
    return grant.model_copy(update={"to": to, "on": grant.on.model_copy(update={"warehouse": earlier})})


def _map_earlier_roles(tenant: TenantSpec) -> dict[str, str]:
    """Return the earlier names of the roles of renamed warehouses."""
    return {
        name_role(warehouse.name, kind): name_role(warehouse.renamed_from, kind)
        for warehouse in tenant.warehouses
        if warehouse.renamed_from
        for kind in ON_WAREHOUSE
    }


_READING = frozenset({"describe", "select"})
"""Privileges that an archived warehouse keeps."""


def _is_retained(tenant: TenantSpec, grant: GrantSpec) -> bool:
    """Return whether the grant is kept, as its target is retained. An archived warehouse keeps reading only."""
    targets = [tenant.find_warehouse(grant.on.warehouse)] if grant.on.warehouse else tenant.warehouses
    if grant.privilege not in _READING and any(warehouse.is_archived for warehouse in targets):
        return False
    return any(warehouse.data_deletion == "retain" for warehouse in targets)
