"""Grants of a migration between two Lakekeepers: which can be carried, carry them, and take them back.

Users have the same ID on both sides, roles the same name. Grants are direct grants; members of roles are not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from pyiceberg.typedef import Identifier

from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.endpoint import Endpoint, find_original_name
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
            are left out, since they apply to other tables as well. They are also left out if they would apply to
            tables and views that the target has from elsewhere.
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
    other_names = _list_other_names(target, entries) if is_whole else []
    grants: dict[ObjectKey, set[CarriedGrant]] = {}
    descriptions: list[str] = []
    losses = [] if is_whole else ["grants on namespaces and on the warehouse are not migrated with --table"]
    for key, path in sorted(paths.items()):
        if key not in names and not (is_whole and key[0] in {"warehouse", "namespace"}):
            continue
        other_name = None if key in names else _find_in_object(other_names, key)
        for grant in sorted(source_grants.read(path)):
            carried, reason = principals.find(grant)
            if other_name is not None:
                reason = f"it would apply to {'.'.join(other_name)} of {target}, which is not migrated"
            text = f"{_format_object(key)}: {grant.privilege} of {principals.format(grant)}"
            if reason or carried is None:
                losses.append(f"{text}: {reason}")
            else:
                grants.setdefault(key, set()).add(carried)
                descriptions.append(text)
    target_grants.read(target_grants.warehouse_path)  # raises an error before tables move if this is not allowed
    return GrantPlan(grants, tuple(descriptions), tuple(losses))


def select_grants(plan: GrantPlan, entries: Collection[Entry]) -> GrantPlan:
    """Return the part of a plan for some tables and views, with the grants on their namespaces and the warehouse."""
    return replace(
        plan,
        grants={key: grants for key, grants in plan.grants.items() if any(_contains(key, entry) for entry in entries)},
    )


def carry_grants(plan: GrantPlan, target: Endpoint, ledger: Ledger) -> None:
    """Add the planned grants that the target lacks. The ledger has them before, so that an undo removes no others.

    Raises:
        MigrationError: The target lacks an object. The grants on other objects are added.
    """
    if not plan.grants:
        return
    catalog = GrantCatalog(target)
    namespaces = {key[1] if key[0] == "namespace" else key[1][:-1] for key in plan.grants} - {()}
    paths = catalog.list_paths(namespaces)
    for key, grants in plan.grants.items():
        path = paths.get(key)
        if path is not None and (missing := grants - catalog.read(path)):
            ledger.record_grants(target.warehouse, key, path, missing)
            catalog.change(path, writes=missing)
    if lacking := [_format_object(key) for key in plan.grants if key not in paths]:
        raise MigrationError(
            f"grants are not migrated for {len(lacking)} objects: expected {lacking[0]} in {target}, found none"
        )


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
    """Return the grants on an object; none for a table or view, since an undo drops it together with its grants."""
    if path.count("/") > 1:  # a table or view
        return set()
    return catalog.read(path)


def _list_other_names(target: Endpoint, entries: Collection[Entry]) -> list[Identifier]:
    """Return the target's tables and views that do not come from this migration."""
    identifiers = {entry.identifier for entry in entries}
    names = (*target.list_all_tables(), *target.list_views())
    return [name for name in names if not identifiers & {name, find_original_name(name)}]


def _find_in_object(names: Collection[Identifier], key: ObjectKey) -> Identifier | None:
    """Return the first name in a namespace or warehouse; None without names in it."""
    return next((name for name in names if name[: len(key[1])] == key[1]), None)


def _contains(key: ObjectKey, entry: Entry) -> bool:
    """Return whether an object is a table or view, or has it in it."""
    level, identifier = key
    if level in {"table", "view"}:
        return identifier == entry.identifier and entry.is_view is (level == "view")
    return entry.namespace[: len(identifier)] == identifier


def _format_object(key: ObjectKey) -> str:
    level, identifier = key
    return f"{level} {'.'.join(identifier)}".strip()


class _Principals:
    """The users and roles of the source, and the same users and roles of the target.

    Lakekeeper compares the names of roles without regard to case.
    """

    def __init__(self, source: GrantCatalog, target: GrantCatalog) -> None:
        self._target = target
        self._is_one_server = source.endpoint.config.uri == target.endpoint.config.uri
        self._names = source.list_roles()
        self._source_ids, self._target_ids = _group_by_name(self._names), _group_by_name(target.list_roles())
        self._users: dict[str, bool] = {}

    def find(self, grant: CarriedGrant) -> tuple[CarriedGrant | None, str]:
        """Return the grant with the target's user or role, or None and why the target cannot have it."""
        if grant.kind == "role":
            return self._find_role(grant)
        if grant.principal not in self._users:
            self._users[grant.principal] = self._is_one_server or self._target.has_user(grant.principal)
        return (grant, "") if self._users[grant.principal] else (None, f"{self._target.endpoint} has no such user")

    def _find_role(self, grant: CarriedGrant) -> tuple[CarriedGrant | None, str]:
        name = self._names.get(grant.principal, "").casefold()
        ids = self._target_ids.get(name, [])
        if not ids:
            return None, f"{self._target.endpoint} has no such role"
        if max(len(ids), len(self._source_ids[name])) > 1:
            return None, "several roles have this name"
        return CarriedGrant(grant.privilege, "role", ids[0]), ""

    def format(self, grant: CarriedGrant) -> str:
        """Return the user or role as text."""
        return f"{grant.kind} {self._names.get(grant.principal, grant.principal)}"


def _group_by_name(roles: dict[str, str]) -> dict[str, list[str]]:
    """Return the IDs of roles by name in one case."""
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for role, name in roles.items():
        ids[name.casefold()].append(role)
    return dict(ids)
