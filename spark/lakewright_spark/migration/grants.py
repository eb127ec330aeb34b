"""Grants of a migration between two Lakekeepers: which can be carried, carry them, and take them back.

Users have the same ID on both sides, roles the same name. Grants are direct grants; members of roles are not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.grant_catalog import GrantCatalog, ObjectKey
from lakewright_spark.migration.ledger import CarriedGrant, Entry, Ledger, Step


@dataclass(frozen=True)
class GrantPlan:
    """The grants that the target gets, by object, and why other grants are not carried."""

    grants: dict[ObjectKey, set[CarriedGrant]] = field(default_factory=dict[ObjectKey, set[CarriedGrant]])
    """With the IDs of the target's roles."""
    descriptions: tuple[str, ...] = ()
    """The same grants as text."""
    losses: tuple[str, ...] = ()


def plan_grants(source: Endpoint, target: Endpoint, entries: Collection[Entry], *, is_whole: bool) -> GrantPlan:
    """Plan which grants the target gets. Nothing is changed.

    Args:
        source: The source.
        target: The target.
        entries: Tables and views.
        is_whole: Whether all tables of the warehouse are selected. Otherwise, grants on namespaces and on the warehouse
            are left out, since they apply to other tables as well.
    """
    source_grants, target_grants = GrantCatalog(source), GrantCatalog(target)
    for side in (source_grants, target_grants):
        if not side.enforces_grants:
            return GrantPlan(
                losses=(f"grants are not migrated: {side.endpoint} is no Lakekeeper that enforces grants",)
            )
    principals = _Principals(source_grants, target_grants)
    paths = source_grants.list_paths({entry.namespace for entry in entries})
    names: set[ObjectKey] = {("view" if entry.is_view else "table", entry.identifier) for entry in entries}
    grants: dict[ObjectKey, set[CarriedGrant]] = {}
    descriptions: list[str] = []
    losses = [] if is_whole else ["grants on namespaces and on the warehouse are not migrated with --table"]
    for key, path in sorted(paths.items()):
        if key not in names and not (is_whole and key[0] in {"warehouse", "namespace"}):
            continue
        for grant in sorted(source_grants.read(path)):
            carried = principals.find(grant)
            text = f"{_format_object(key)}: {grant.privilege} of {principals.format(grant)}"
            if carried is None:
                losses.append(f"{text}: {target} has no such {grant.kind}")
            else:
                grants.setdefault(key, set()).add(carried)
                descriptions.append(text)
    return GrantPlan(grants, tuple(descriptions), tuple(losses))


def carry_grants(plan: GrantPlan, target: Endpoint, ledger: Ledger) -> None:
    """Add the planned grants that the target lacks. The ledger has them before, so that an undo removes no others."""
    if not plan.grants:
        return
    catalog = GrantCatalog(target)
    namespaces = {identifier[:-1] for level, identifier in plan.grants if level in {"table", "view"}}
    paths = catalog.list_paths(namespaces)
    for key, grants in plan.grants.items():
        path = paths.get(key)
        if path is not None and (missing := grants - catalog.read(path)):
            ledger.record_grants(target.warehouse, key, path, missing)
            catalog.change(path, writes=missing)


def revert_grants(ledger: Ledger, open_target: Callable[[str], Endpoint]) -> None:
    """Remove the grants that this migration added, of objects without tables that remain in the target."""
    remaining = [entry for entry in ledger.list_entries() if entry.step in {Step.CUT_OVER, Step.FINISHED}]
    added_grants: defaultdict[tuple[str, str], set[CarriedGrant]] = defaultdict(set)
    for warehouse, (_, identifier), path, grant in ledger.list_grants():
        if not any(
            entry.warehouse == warehouse and entry.identifier[: len(identifier)] == identifier for entry in remaining
        ):
            added_grants[warehouse, path].add(grant)
    for (warehouse, path), grants in added_grants.items():
        catalog = GrantCatalog(open_target(warehouse))
        if existing := grants & _read_if_exists(catalog, path):
            catalog.change(path, deletes=existing)
        ledger.forget_grants(path)


def _read_if_exists(catalog: GrantCatalog, path: str) -> set[CarriedGrant]:
    """Return the grants on an object. Nobody has rights on a table that an undo has dropped."""
    if path.count("/") > 1:  # a table or view, whose grants are dropped with it
        return set()
    return catalog.read(path)


def _format_object(key: ObjectKey) -> str:
    level, identifier = key
    return f"{level} {'.'.join(identifier)}".strip()


class _Principals:
    """The users and roles of the source, and the same users and roles of the target."""

    def __init__(self, source: GrantCatalog, target: GrantCatalog) -> None:
        self._target = target
        self._is_one_server = source.endpoint.config.uri == target.endpoint.config.uri
        self._names = source.list_roles()
        self._ids = {name: role for role, name in target.list_roles().items()}
        self._users: dict[str, bool] = {}

    def find(self, grant: CarriedGrant) -> CarriedGrant | None:
        """Return the grant with the target's user or role; None if the target has no such user or role."""
        if grant.kind == "role":
            role = self._ids.get(self._names.get(grant.principal, ""))
            return CarriedGrant(grant.privilege, "role", role) if role else None
        if grant.principal not in self._users:
            self._users[grant.principal] = self._is_one_server or self._target.has_user(grant.principal)
        return grant if self._users[grant.principal] else None

    def format(self, grant: CarriedGrant) -> str:
        """Return the user or role as text."""
        return f"{grant.kind} {self._names.get(grant.principal, grant.principal)}"
