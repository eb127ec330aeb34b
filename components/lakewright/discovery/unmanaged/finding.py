"""UnmanagedObject: an object in a tenant's scope that no stack has, and its form in a drift report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakewright.discovery.listing.managed_objects import LAKEKEEPER, ObjectKey
from lakewright.drift.model import Difference, DifferenceKind


@dataclass(frozen=True)
class UnmanagedObject:
    """An object or setting that exists and that no stack has."""

    type: str
    """Type that its resource would have."""
    resource: str
    """Name for display, such as `analysts`."""
    value: Any
    """Id or value."""
    kind: str
    """Kind of the key."""
    key: ObjectKey
    """By kind and key another stack may manage it."""
    property: str = ""
    """Path of a setting of a managed object; empty for a whole object."""

    def to_difference(self, stack: str, tenant: str) -> Difference:
        """Return it as a difference of a stack."""
        return Difference(
            tenant, stack, "", self.type, self.resource, self.property, None, self.value, DifferenceKind.UNMANAGED
        )


def to_lakekeeper_type(name: str) -> str:
    """Return the type of a Lakekeeper resource."""
    return f"{LAKEKEEPER}{name}"
