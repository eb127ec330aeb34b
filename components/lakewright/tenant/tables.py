"""A tenant's tables, in the namespaces of its warehouses."""

from __future__ import annotations

import pulumi

from lakewright.environment.platform import Platform
from lakewright.lakekeeper import Table
from lakewright.names.table_name import parse_table_name
from lakewright.spec import TenantSpec
from lakewright.spec.table import TableSpec
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
        table_opts = pulumi.ResourceOptions(
            depends_on=[warehouse.namespaces[namespace]],
            retain_on_delete=deletion == "retain",
            aliases=[pulumi.Alias(name=f"{tenant.name}-{name}") for name in _list_earlier_names(tenant, spec)],
        )
        tables.append(
            Table(
                f"{tenant.name}-{spec.name}",
                server=platform.server,
                warehouse_id=warehouse.warehouse_id,
                namespace=namespace,
                name=path.name,
                columns=[column.model_dump(exclude_none=True) for column in spec.columns],
                identifier=spec.identifier,
                partition_by=spec.partition_by,
                sort_by=spec.sort_by,
                properties={**spec.properties, **spec.policies.properties()},
                format_version=spec.format_version,
                protected=spec.protected,
                dropped_columns=spec.dropped_columns,
                undeclared_columns=spec.undeclared_columns,
                deletion=deletion,
                adopt=tenant.adopts(spec),
                opts=pulumi.ResourceOptions.merge(opts, table_opts),
            )
        )
    return tables


def _list_earlier_names(tenant: TenantSpec, spec: TableSpec) -> list[str]:
    """Return the earlier names of a table: before its rename, its warehouse's, or both."""
    names = [spec.path, *([parse_table_name(spec.renamed_from)] if spec.renamed_from else [])]
    if earlier := tenant.find_earlier_name(spec.path.warehouse):
        names += [name._replace(warehouse=earlier) for name in names]
    return [str(name) for name in names if name != spec.path]
