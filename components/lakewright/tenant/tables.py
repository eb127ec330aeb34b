"""A tenant's tables, in the namespaces of its warehouses."""

from __future__ import annotations

import pulumi

from lakewright.environment.platform import Platform
from lakewright.field_map.arguments import build_args
from lakewright.lakekeeper import Table
from lakewright.spec import TenantSpec
from lakewright.tenant.warehouse import TenantWarehouse


def make_tables(
    tenant: TenantSpec, platform: Platform, warehouses: dict[str, TenantWarehouse], opts: pulumi.ResourceOptions
) -> list[Table]:
    """Make the declared tables, each after its namespace."""
    tables: list[Table] = []
    for spec in tenant.tables:
        path = spec.path
        namespace = ".".join(path.namespace)
        warehouse = warehouses[path.warehouse]
        deletion = tenant.find_deletion(spec)
        args = build_args(spec)
        args.update(deletion=deletion, adopt=tenant.adopts(spec))
        table_opts = pulumi.ResourceOptions(
            depends_on=[warehouse.namespaces[namespace]],
            retain_on_delete=deletion == "retain",
            aliases=[pulumi.Alias(name=f"{tenant.name}-{name}") for name in tenant.list_earlier_names(spec)],
        )
        tables.append(
            Table(
                f"{tenant.name}-{spec.name}",
                server=platform.server,
                warehouse_id=warehouse.warehouse_id,
                namespace=namespace,
                **args,
                opts=pulumi.ResourceOptions.merge(opts, table_opts),
            )
        )
    return tables
