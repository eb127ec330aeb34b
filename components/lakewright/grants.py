"""A tenant's grants and the roles that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi

from lakewright.environment.platform import Platform
from lakewright.lakekeeper import Grant, Role, Table
from lakewright.spec import TenantSpec
from lakewright.spec.grant import GrantSpec, GrantTarget
from lakewright.warehouse import TenantWarehouse


def grants_for(
    tenant: TenantSpec,
    platform: Platform,
    *,
    project_id: pulumi.Input[str],
    warehouses: dict[str, TenantWarehouse],
    tables: Sequence[Table],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Make roles and grants. A grant is made after its warehouse and revoked before that is deleted."""
    kept = pulumi.ResourceOptions(retain_on_delete=any(w.deletion == "retain" for w in tenant.warehouses))
    roles = {
        name: Role(
            f"{tenant.name}-{name}",
            server=platform.server,
            project_id=project_id,
            name=name,
            adopt=tenant.adopt,
            opts=pulumi.ResourceOptions.merge(opts, kept),
        )
        for name in role_names(tenant)
    }
    made: list[pulumi.Resource] = [*roles.values()]
    for grant in tenant.grants:
        warehouse = warehouses.get(grant.on.warehouse or "")
        earlier = tenant.renamed(grant.on.warehouse or "")
        before = grant.on.model_copy(update={"warehouse": earlier}) if earlier else None
        own = pulumi.ResourceOptions(
            depends_on=[*([warehouse] if warehouse else []), *(tables if grant.on.table else [])],
            retain_on_delete=_retained(tenant, grant),
            aliases=[pulumi.Alias(name=_resource_name(tenant, grant, before))] if before else None,
        )
        made.append(
            Grant(
                _resource_name(tenant, grant, grant.on),
                server=platform.server,
                on=_target(grant, project_id, warehouse),
                privilege=grant.privilege,
                user=grant.user,
                role=roles[grant.role].role_id if grant.role else None,
                opts=pulumi.ResourceOptions.merge(opts, own),
            )
        )
    return made


def _resource_name(tenant: TenantSpec, grant: GrantSpec, on: GrantTarget) -> str:
    return f"{tenant.name}-{grant.to.replace(':', '-')}-{grant.privilege}-{str(on).replace(' ', '-')}"


def role_names(tenant: TenantSpec) -> list[str]:
    """Return the roles that a tenant's grants name, without duplicates."""
    return list(dict.fromkeys(grant.role for grant in tenant.grants if grant.role))


def _retained(tenant: TenantSpec, grant: GrantSpec) -> bool:
    """Return whether the grant is kept, as its target is retained."""
    deletions = {w.name: w.deletion for w in tenant.warehouses}
    if grant.on.warehouse:
        return deletions[grant.on.warehouse] == "retain"
    return "retain" in deletions.values()


def _target(grant: GrantSpec, project_id: pulumi.Input[str], warehouse: TenantWarehouse | None) -> dict[str, Any]:
    """Return the target in the fields of the provider."""
    if warehouse is None:
        return {"type": "project", "project_id": project_id}
    inside: dict[str, Any] = {"type": grant.on.kind, "warehouse_id": warehouse.warehouse_id}
    if grant.on.namespace:
        inside["namespace"] = grant.on.namespace
    if grant.on.table:
        inside["namespace"], inside["name"] = grant.on.table_path
    return inside
