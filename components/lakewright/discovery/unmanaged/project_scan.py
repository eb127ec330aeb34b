"""Find what a tenant's project has and no stack: warehouses, roles, members, grants, queues and protection.

Namespaces and tables are what jobs make in a warehouse all day. They are searched only if a run asks for them.

Each search sends a request or two, and all may run at the same time. Few of them wait for a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from lakewright.discovery.listing.managed_objects import grant_key, inside_key, server_key
from lakewright.discovery.unmanaged.finding import UnmanagedObject, lakekeeper_type
from lakewright.discovery.unmanaged.tenant_scope import GrantPlace, TenantScope
from lakewright.lakekeeper.api.catalog import namespaces, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, RefusedError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, OWNERS, GrantEntry, Object, ObjectKind
from lakewright.lakekeeper.api.management import grants, members, projects, roles, task_queues, users
from lakewright.lakekeeper.api.management import warehouses as warehouse_calls
from lakewright.lakekeeper.api.management.task_queues import LOG_CLEANUP, SOFT_DELETION, Scope
from lakewright.lakekeeper.grants.model import target as grant_target
from lakewright.lakekeeper.grants.model.target import OnNamespace, OnTabular

_OWN_PROVIDER = "lakekeeper"
"""Provider of roles that people make. Those of other providers are synchronized from a directory."""


class PartialSearch(Protocol):
    """The search of a part of a project."""

    def __call__(self) -> Iterable[UnmanagedObject | PartialSearch]:
        """Return what no stack manages, and further searches in the place of their results.

        Raises:
            LakekeeperError: The server does not answer, or refuses a call.
        """
        ...


@dataclass(frozen=True)
class ProjectScan:
    """Searches one tenant's project."""

    client: Client
    scope: TenantScope
    tables: bool
    """Whether namespaces and tables count."""

    def search(self) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield what no resource of the stack manages, and searches of the parts of the project.

        Raises:
            LakekeeperError: The server does not answer, or refuses a list.
        """
        enforces = self.client.server().keeps_tuples
        yield partial(self._search_roles, enforces=enforces)
        yield self._search_warehouses
        if enforces:
            yield self._read_identity
            for place in self.scope.grant_places():
                yield partial(self._search_grants, place)

    def _search_roles(self, *, enforces: bool) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield roles, and searches of their members."""
        listed_roles = roles.list_cached(self.client, self.scope.project_id)
        yield from self._roles(listed_roles)
        if enforces:
            yield from self._members({str(role["id"]) for role in listed_roles})

    def _search_warehouses(self) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield warehouses, and searches of the settings and contents of those of the stack."""
        listed_warehouses = list(warehouse_calls.cached_by_id(self.client, self.scope.project_id).values())
        yield from self._warehouses(listed_warehouses)
        active = [warehouse_calls.id_of(entry) for entry in listed_warehouses if entry.get("status") == "active"]
        own = [warehouse_id for warehouse_id in active if warehouse_id in self.scope.warehouses]
        yield from self._queues(own)
        for warehouse_id in own:
            yield from self._protection(warehouse_id)
            if self.tables:
                yield partial(self._search_contents, warehouse_id, None)

    def _read_identity(self) -> Iterator[UnmanagedObject]:
        """Read the calling user while others read the grants, which need it next."""
        users.get_ourselves_cached(self.client)
        return iter(())

    @property
    def _server(self) -> str:
        return server_key(self.scope.server.get("endpoint"))

    def _warehouses(self, found: Iterable[warehouse_calls.WarehouseResponse]) -> Iterator[UnmanagedObject]:
        for entry in found:
            key = (self._server, warehouse_calls.id_of(entry))
            if not self.scope.managed.has("warehouse", key):
                yield UnmanagedObject(lakekeeper_type("Warehouse"), str(entry["name"]), key[1], "warehouse", key)

    def _roles(self, found: Iterable[roles.RoleResponse]) -> Iterator[UnmanagedObject]:
        for role in found:
            key = (self._server, str(role["id"]))
            is_own = (role.get("provider-id") or _OWN_PROVIDER) == _OWN_PROVIDER
            if is_own and not self.scope.managed.has("role", key):
                yield UnmanagedObject(lakekeeper_type("Role"), str(role["name"]), key[1], "role", key)

    def _members(self, existing: set[str]) -> Iterator[PartialSearch]:
        """Yield searches for members of the stack's roles that the stack gives no members."""
        for role_id in self.scope.roles:
            if role_id in existing and not self.scope.managed.has("role members", (self._server, role_id)):
                yield partial(self._search_members, role_id)

    def _search_members(self, role_id: str) -> Iterator[UnmanagedObject]:
        held = members.of_role(self.client, self.scope.project_id, role_id) or frozenset()
        if others := sorted(f"{kind} {member}" for kind, member in held if not self._is_granted(role_id, member)):
            key = (self._server, role_id)
            name = self.scope.roles[role_id]
            yield UnmanagedObject(lakekeeper_type("RoleMembers"), name, others, "role members", key)

    def _is_granted(self, role_id: str, member: str) -> bool:
        """Return whether a `Grant` of the stack makes a principal a member."""
        entries = (GrantEntry(ASSIGNEE, "user", member), GrantEntry(ASSIGNEE, "role", member))
        return any(
            self.scope.managed.has("grant", grant_key(self._server, "role", (role_id,), entry)) for entry in entries
        )

    def _search_grants(self, place: GrantPlace) -> Iterator[UnmanagedObject]:
        held = self._read_grants(place)
        identity = users.get_ourselves_cached(self.client)
        for entry in sorted(held - made_by_server(place.on.kind, held, identity)):
            key = grant_key(self._server, place.on.kind, self._place(place), entry)
            if entry.privilege == ASSIGNEE or self.scope.managed.has("grant", key):
                continue
            title = f"{entry.privilege} of {entry.kind} {self._name_of(entry)} on {place.name}"
            yield UnmanagedObject(lakekeeper_type("Grant"), title, str(entry), "grant", key)

    def _name_of(self, entry: GrantEntry) -> str:
        """Return the name of a role, or the id of a user."""
        if entry.kind != "role":
            return entry.principal
        try:
            listed_roles = roles.list_cached(self.client, self.scope.project_id)
        except RefusedError:
            return entry.principal  # the search of roles reports the refusal
        names = (str(role["name"]) for role in listed_roles if str(role["id"]) == entry.principal)
        return next(names, entry.principal)

    def _read_grants(self, place: GrantPlace) -> frozenset[GrantEntry]:
        """Return the grants on an object that has the place's name now; none if there is no such object."""
        try:
            return grants.get_cached(self.client, place.on) or frozenset()
        except ForbiddenError:
            # OpenFGA refuses the id of a deleted object. Another object may have its name.
            current = self._find_current(place)
            if current is not None and current.object_id == place.on.object_id:
                raise
            return (grants.get_cached(self.client, current) if current else None) or frozenset()

    def _find_current(self, place: GrantPlace) -> Object | None:
        """Return the object that has the name of a namespace or table; for any other kind the place's own object."""
        on, path = place.on, place.inside
        match on.kind:
            case "namespace":
                target = OnNamespace(type="namespace", warehouse_id=str(on.warehouse_id), namespace=".".join(path))
            case "table":
                namespace, name = ".".join(path[:-1]), path[-1]
                target = OnTabular(type="table", warehouse_id=str(on.warehouse_id), namespace=namespace, name=name)
            case _:
                return on
        return grant_target.resolved(self.client, target)

    def is_deleted(self) -> bool:
        """Return whether the project no longer exists. OpenFGA refuses its id then."""
        try:
            return projects.get_cached(self.client, self.scope.project_id) is None
        except ForbiddenError:
            return False

    @staticmethod
    def _place(place: GrantPlace) -> tuple[str, ...]:
        top = place.on.project_id if place.on.kind == "project" else place.on.warehouse_id
        return (str(top), *place.inside)

    def _queues(self, own: Iterable[str]) -> Iterator[PartialSearch]:
        scopes = [
            (Scope(warehouse_id, None), f"warehouse {self.scope.warehouses[warehouse_id]}") for warehouse_id in own
        ]
        for scope, title in scopes:
            for queue in self.client.server().queues:
                if queue != LOG_CLEANUP:
                    yield partial(self._search_queue, scope, queue, title)
        if LOG_CLEANUP in self.client.server().queues:
            scope = Scope(None, self.scope.project_id)
            yield partial(self._search_queue, scope, LOG_CLEANUP, f"project {self.scope.project_id}")

    def _search_queue(self, scope: Scope, queue: str, title: str) -> Iterator[UnmanagedObject]:
        name = SOFT_DELETION if queue == "tabular_expiration" else queue
        key = (self._server, scope.warehouse_id or scope.project_id or "", name)
        if self.scope.managed.has("task queue", key):
            return
        there = task_queues.get(self.client, scope, queue)
        if there and there.is_set:
            heartbeat = {"max_seconds_since_last_heartbeat": there.max_seconds_since_last_heartbeat}
            found = {**there.config, **{name: value for name, value in heartbeat.items() if value is not None}}
            title = f"{name} of {title}"
            yield UnmanagedObject(lakekeeper_type("TaskQueueConfig"), title, found, "task queue", key)

    def _protection(self, warehouse_id: str) -> Iterator[PartialSearch]:
        """Yield searches for protection of the stack's namespaces that the stack does not declare."""
        for owner, name in self.scope.namespaces:
            if owner == warehouse_id and (owner, name) not in self.scope.declares_protection:
                yield partial(self._search_protection, warehouse_id, name)

    def _search_protection(self, warehouse_id: str, name: str) -> Iterator[UnmanagedObject]:
        listed = namespaces.get_cached(self.client, warehouse_id, tuple(name.split(".")))
        if listed is not None and listed.protected:
            title = f"{self.scope.warehouses[warehouse_id]}.{name}"
            key = (*inside_key(self._server, warehouse_id, name.split(".")), "protected")
            yield UnmanagedObject(
                lakekeeper_type("Namespace"), title, found=True, kind="protection", key=key, property="protected"
            )

    def _search_contents(self, warehouse_id: str, parent: Path | None) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield the namespaces below one, and searches of their tables and of the namespaces below them."""
        for namespace in namespaces.list_cached(self.client, warehouse_id, parent):
            yield from self._namespace(warehouse_id, namespace)
            yield partial(self._search_tables, warehouse_id, namespace.path)
            yield partial(self._search_contents, warehouse_id, namespace.path)

    def _namespace(self, warehouse_id: str, namespace: ListedNamespace) -> Iterator[UnmanagedObject]:
        key = inside_key(self._server, warehouse_id, namespace.path)
        if not self.scope.managed.has("namespace", key):
            title = f"{self.scope.warehouses[warehouse_id]}.{'.'.join(namespace.path)}"
            yield UnmanagedObject(lakekeeper_type("Namespace"), title, namespace.namespace_id, "namespace", key)

    def _search_tables(self, warehouse_id: str, path: Path) -> Iterator[UnmanagedObject]:
        warehouse = self.scope.warehouses[warehouse_id]
        for tabular in tabulars.live(self.client, warehouse_id, path):
            key = inside_key(self._server, warehouse_id, (*tabular.namespace, tabular.name))
            if not self.scope.managed.has("table", key):
                title = (
                    f"{warehouse}.{tabular}" if tabular.kind == "table" else f"{warehouse}.{tabular} ({tabular.kind})"
                )
                yield UnmanagedObject(lakekeeper_type("Table"), title, tabular.tabular_id, "table", key)


def made_by_server(kind: ObjectKind, held: frozenset[GrantEntry], identity: str | None) -> frozenset[GrantEntry]:
    """Return the ownership that the server grants to the creator of an object.

    Owners of namespaces and tables follow from who makes them. A project or warehouse has one creator: the identity
    that reads if it is an owner, else the only owner. If neither holds, no owner is left out.
    """
    owners = frozenset(entry for entry in held if entry.kind == "user" and entry.privilege in OWNERS[kind])
    if kind not in {"project", "warehouse"}:
        return owners
    own = frozenset(entry for entry in owners if entry.principal == identity)
    return own or (owners if len(owners) == 1 else frozenset())
