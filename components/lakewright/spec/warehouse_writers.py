"""Principals other than the owner whose runs may write to a warehouse: grants let them create and change tables."""

from __future__ import annotations

from datetime import datetime

from lakewright.spec.grant import GrantSpec
from lakewright.spec.tenant import TenantSpec
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.validation.moment import parse_end

_BOTH = frozenset({"create", "modify"})
_IMPLIED: dict[tuple[str, str], frozenset[str]] = {
    ("warehouse", "ownership"): _BOTH,
    ("warehouse", "create"): frozenset({"create"}),
    ("warehouse", "modify"): frozenset({"modify"}),
    ("project", "project_admin"): _BOTH,
    ("project", "data_admin"): _BOTH,
    ("project", "create"): frozenset({"create"}),
    ("project", "modify"): frozenset({"modify"}),
}
"""Privileges in a warehouse that a privilege on the warehouse or project implies, by Lakekeeper's OpenFGA model."""


def find_writers(tenant: TenantSpec, warehouse: WarehouseSpec) -> dict[str, datetime | None]:
    """Return the principals in a stable order, each with the time at which it may no longer write; None without an end.

    A warehouse without an owner has none, since all may write to it.
    """
    if warehouse.owner is None:
        return {}
    ends: dict[str, dict[str, datetime | None]] = {}
    for grant in tenant.grants:
        if not _reaches_warehouse(grant, warehouse.name) or grant.to == warehouse.owner:
            continue
        end = None if grant.until is None else parse_end(grant.until)
        privilege_ends = ends.setdefault(grant.to, {})
        for privilege in _IMPLIED.get((grant.on.kind, grant.privilege), frozenset()):
            privilege_ends[privilege] = _find_later(privilege_ends.get(privilege, end), end)
    return {
        principal: min((end for end in privilege_ends.values() if end is not None), default=None)
        for principal, privilege_ends in sorted(ends.items())
        if privilege_ends.keys() == _BOTH
    }


def _find_later(first: datetime | None, second: datetime | None) -> datetime | None:
    return None if first is None or second is None else max(first, second)


def _reaches_warehouse(grant: GrantSpec, warehouse: str) -> bool:
    # A run creates tables for its results, which a grant on one namespace does not allow.
    return grant.on.kind == "project" or (grant.on.kind == "warehouse" and grant.on.warehouse == warehouse)
