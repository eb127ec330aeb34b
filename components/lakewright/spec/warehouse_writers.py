"""Whose runs write to a warehouse beside its owner's: whom a grant lets make tables and change them. Pure."""

from __future__ import annotations

from lakewright.spec.grant import GrantSpec
from lakewright.spec.tenant import TenantSpec
from lakewright.spec.warehouse import WarehouseSpec

_BOTH = frozenset({"create", "modify"})
_GIVES: dict[tuple[str, str], frozenset[str]] = {
    ("warehouse", "ownership"): _BOTH,
    ("warehouse", "create"): frozenset({"create"}),
    ("warehouse", "modify"): frozenset({"modify"}),
    ("project", "project_admin"): _BOTH,
    ("project", "data_admin"): _BOTH,
    ("project", "create"): frozenset({"create"}),
    ("project", "modify"): frozenset({"modify"}),
}
"""What a privilege on the warehouse or the project amounts to in the warehouse, by Lakekeeper's OpenFGA model."""


def writers(tenant: TenantSpec, warehouse: WarehouseSpec) -> tuple[str, ...]:
    """The principals, as the spec writes them, in a stable order. A warehouse without an owner needs none: all may."""
    if warehouse.owner is None:
        return ()
    given: dict[str, frozenset[str]] = {}
    for grant in tenant.grants:
        if _reaches_all_of(grant, warehouse.name):
            more = _GIVES.get((grant.on.kind, grant.privilege), frozenset())
            given[grant.to] = given.get(grant.to, frozenset()) | more
    return tuple(sorted(who for who, what in given.items() if what == _BOTH and who != warehouse.owner))


def _reaches_all_of(grant: GrantSpec, warehouse: str) -> bool:
    # A run makes the tables that it needs where its results go: a grant on one namespace is no leave to do so.
    return grant.on.kind == "project" or (grant.on.kind == "warehouse" and grant.on.warehouse == warehouse)
