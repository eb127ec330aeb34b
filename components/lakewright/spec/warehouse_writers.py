"""Principals other than the owner whose runs may write to a warehouse: grants let them create and change tables."""

from __future__ import annotations

from lakewright.spec.grant import GrantSpec
from lakewright.spec.tenant import TenantSpec
from lakewright.spec.warehouse import WarehouseSpec

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


def writers(tenant: TenantSpec, warehouse: WarehouseSpec) -> tuple[str, ...]:
    """Return the principals in a stable order. None for a warehouse without an owner, where all may write."""
    if warehouse.owner is None:
        return ()
    privileges: dict[str, frozenset[str]] = {}
    for grant in tenant.grants:
        if _reaches_warehouse(grant, warehouse.name):
            more = _IMPLIED.get((grant.on.kind, grant.privilege), frozenset())
            privileges[grant.to] = privileges.get(grant.to, frozenset()) | more
    return tuple(
        sorted(
            principal for principal, actions in privileges.items() if actions == _BOTH and principal != warehouse.owner
        )
    )


def _reaches_warehouse(grant: GrantSpec, warehouse: str) -> bool:
    # A run creates tables for its results, which a grant on one namespace does not allow.
    return grant.on.kind == "project" or (grant.on.kind == "warehouse" and grant.on.warehouse == warehouse)
