"""Tenants whose previews are equal but for their names, and the parts of a tenant that changes are ordered by."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from lakewright.ci.preview_rows import TenantChanges
from lakewright.names.tenant_mask import mask_tenant


class TenantPart(StrEnum):
    """A part of a tenant, in the order from storage to compute."""

    STORAGE = "storage"
    CATALOG = "catalog"
    TABLES = "tables"
    ACCESS = "access"
    COMPUTE = "compute"
    OTHER = "other"


_PARTS = {
    **dict.fromkeys(("Project", "Warehouse", "Namespace", "TaskQueueConfig", "Bootstrap"), TenantPart.CATALOG),
    **dict.fromkeys(("Table", "View"), TenantPart.TABLES),
    **dict.fromkeys(("Role", "RoleMembers", "User", "Grant", "Grants"), TenantPart.ACCESS),
    **dict.fromkeys(("StoreBucket",), TenantPart.STORAGE),
}
"""Parts of the dynamic resources by kind."""


def find_part(type_: str) -> TenantPart:
    """Return the part of a tenant that a resource belongs to.

    Args:
        type_: Type token of the resource, such as `aws:s3/bucket:Bucket`.
    """
    package, _, _ = type_.partition(":")
    if package in ("aws", "minio"):
        return TenantPart.STORAGE
    if package == "kubernetes":
        return TenantPart.COMPUTE
    return _PARTS.get(type_.rpartition(":")[2].rpartition("/")[2], TenantPart.OTHER)


def group_rows(rows: Sequence[TenantChanges]) -> list[list[TenantChanges]]:
    """Return tenants with equal changes and messages together, in the order of the first of each group."""
    groups: dict[tuple[object, ...], list[TenantChanges]] = {}
    for row in rows:
        groups.setdefault(_signature(row), []).append(row)
    return [*groups.values()]


def _signature(row: TenantChanges) -> tuple[object, ...]:
    """Return what is equal in previews that differ in the tenant's name only."""
    names = (row.stack.stack, row.stack.tenant)
    changes = [
        (
            change.effect,
            change.type,
            mask_tenant(change.name, names),
            change.loses_data,
            *(mask_tenant(f"{line.sign} {line.path}: {line.text}", names) for line in change.step.properties),
            *change.step.keys,
        )
        for change in row.changes
    ]
    messages = [mask_tenant(message, names) for message in (row.stack.error, *row.stack.messages)]
    return (row.stack.status, row.stack.exit, *sorted(changes), *messages)
