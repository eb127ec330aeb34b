"""A tenant's views, in the namespaces of its warehouses."""

from __future__ import annotations

import pulumi

from lakewright.environment.platform import Platform
from lakewright.field_map.arguments import build_args
from lakewright.lakekeeper import Table, View
from lakewright.spec import TenantSpec
from lakewright.tenant.warehouse import TenantWarehouse


def make_views(
    tenant: TenantSpec,
    platform: Platform,
    warehouses: dict[str, TenantWarehouse],
    tables: list[Table],
    opts: pulumi.ResourceOptions,
) -> list[View]:
    """Make the declared views, each after its namespaces and all declared tables, which its query may name."""
    views: list[View] = []
    for spec in tenant.views:
        path = spec.path
        namespace = ".".join(path.namespace)
        warehouse = warehouses[path.warehouse]
        args = build_args(spec)
        args.update(adopt=tenant.adopts(spec))
        # The server does not drop the default namespace of a view.
        names = {namespace, spec.default_namespace or namespace}
        view_opts = pulumi.ResourceOptions(
            depends_on=[*(warehouse.namespaces[name] for name in sorted(names)), *tables],
            retain_on_delete=tenant.find_warehouse(path.warehouse).data_deletion == "retain",
            aliases=[pulumi.Alias(name=f"{tenant.name}-{name}") for name in tenant.list_earlier_names(spec)],
        )
        views.append(
            View(
                f"{tenant.name}-{spec.name}",
                server=platform.server,
                warehouse_id=warehouse.warehouse_id,
                namespace=namespace,
                **args,
                opts=pulumi.ResourceOptions.merge(opts, view_opts),
            )
        )
    return views
