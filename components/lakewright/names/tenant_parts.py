"""How changes are grouped: by the part of a tenant, from storage to compute, and across tenants without their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

MOST_WITHOUT_PARTS = 5
"""Changes of a tenant that are not divided by its parts."""


class TypedChange(Protocol):
    """A change of a resource."""

    @property
    def type(self) -> str:
        """Type token of the resource."""
        ...


Change = TypeVar("Change", bound=TypedChange)


class TenantPart(StrEnum):
    """A part of a tenant, in the order from storage to compute."""

    STORAGE = "storage"
    CATALOG = "catalog"
    TABLES = "tables"
    ACCESS = "access"
    COMPUTE = "compute"
    OTHER = "other"


_PARTS = {
    **dict.fromkeys(
        ("Project", "SharedProject", "Warehouse", "Namespace", "TaskQueueConfig", "Bootstrap"), TenantPart.CATALOG
    ),
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


def group_by_part(changes: Sequence[Change]) -> list[tuple[str, list[Change]]]:
    """Return changes by part of the tenant, each part with its title.

    Args:
        changes: The changes. Changes of a part keep their order.

    Returns:
        Parts without changes are left out. The titles of a few changes are empty.
    """
    groups: dict[TenantPart, list[Change]] = {part: [] for part in TenantPart}
    for change in changes:
        groups[find_part(change.type)].append(change)
    has_titles = len(changes) > MOST_WITHOUT_PARTS
    return [(part.value if has_titles else "", group) for part, group in groups.items() if group]


def add_parts(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps of an operation as JSON, each with the tenant's part that it belongs to."""
    return [{**step, "part": find_part(str(step["type"])).value} for step in steps]


def sort_by_part(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps with `part` in the order of the parts."""
    order = [part.value for part in TenantPart]
    return sorted(steps, key=lambda step: order.index(step["part"]))


MASK = "TENANT"
"""Stands for the name of the stack or of its tenant."""


def mask_tenant(text: str, names: Iterable[str]) -> str:
    """Return a text with the mask in place of the names, where they are whole words or parts between signs."""
    for name in sorted({name for name in names if name}, key=len, reverse=True):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", MASK, text)
    return text
