"""The record that a stack makes of a tenant's warehouses and buckets before it changes anything."""

from __future__ import annotations

from typing import Any

import pulumi

from lakewright.environment.platform import Platform
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.names.table_name import parse_table_name
from lakewright.spec import TenantSpec


def make_record(spec: TenantSpec, platform: Platform, opts: pulumi.ResourceOptions) -> TenantRecord:
    """Make the record of a tenant. All resources that hold its data depend on it."""
    return TenantRecord(
        spec.name,
        server=platform.server,
        tenant=spec.name,
        project_id=spec.project_id if spec.project_id != spec.name else None,
        shares_project=spec.shares_project,
        warehouses=_describe_warehouses(spec),
        buckets={
            name: platform.describe_own_bucket(storage) | {"has_own_key": storage.has_own_key}
            for name, storage in spec.storage.items()
            if storage.makes_bucket
        },
        stores={
            name: access | storage.server_access | {"is_made": storage.makes_bucket}
            for name, storage in spec.storage.items()
            if (access := storage.stack_access) is not None
        },
        existing_buckets={
            name: {"bucket": storage.bucket, "region": address.region}
            | ({"endpoint": address.endpoint} if address.endpoint else {})
            for name, storage in spec.storage.items()
            if storage.proves_role and (address := storage.address(platform))
        },
        dropped_warehouses=spec.dropped_warehouses,
        principal_arn=platform.environment.lakekeeper.principal_arn
        if any(storage.makes_role for storage in spec.storage.values())
        else None,
        adopting=[warehouse.name for warehouse in spec.warehouses if spec.adopts(warehouse)],
        opts=opts,
    )


def _describe_warehouses(spec: TenantSpec) -> dict[str, dict[str, Any]]:
    """Return the fields of `RecordedWarehouse` by the warehouse's name."""
    fields_by_warehouse: dict[str, dict[str, Any]] = {}
    for warehouse in spec.warehouses:
        tables = [table for table in spec.tables if table.path.warehouse == warehouse.name]
        renamed_tables = [parse_table_name(table.renamed_from) for table in tables if table.renamed_from]
        storage = spec.storage[spec.find_storage_name(warehouse)]
        fields = {
            "bucket": storage.bucket,
            "account": getattr(storage, "account", None),
            "deletion": warehouse.data_deletion,
            "renamed_from": warehouse.renamed_from,
            "key_prefix": warehouse.key_prefix,
            "namespaces": sorted(warehouse.namespace_paths) or None,
            "tables": {table.path.in_warehouse: spec.find_deletion(table) for table in tables} or None,
            "renamed_tables": [name.in_warehouse for name in renamed_tables] or None,
        }
        fields_by_warehouse[warehouse.name] = {name: value for name, value in fields.items() if value is not None}
    return fields_by_warehouse
