"""Find objects of a tenant's project that no stack has: warehouses, roles, members, grants, queues and protection.

Jobs create namespaces and tables in a warehouse all day. These are searched only if a run asks for them.

Each search sends a request or two, and all may run at the same time. Few of them wait for a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from lakewright.discovery.listing.managed_objects import grant_key, inside_key, server_key
from lakewright.discovery.unmanaged.finding import UnmanagedObject, to_lakekeeper_type
from lakewright.discovery.unmanaged.tenant_scope import ScopedObject, TenantScope
from lakewright.lakekeeper.api.catalog import namespaces, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, RefusedError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, OWNERS, GrantEntry, Object, ObjectKind
from lakewright.lakekeeper.api.connection.versions import find_current_queue
from lakewright.lakekeeper.api.management import grants, members, projects, roles, task_queues, users
from lakewright.lakekeeper.api.management import warehouses as warehouse_calls
from lakewright.lakekeeper.api.management.task_queues import LOG_CLEANUP, Scope
from lakewright.lakekeeper.grants import target as grant_target
from lakewright.lakekeeper.grants.target import OnNamespace, OnTabular

_OWN_PROVIDER = "lakekeeper"
"""Provider of roles that people make. Roles of other providers are synchronized from a directory."""


class PartialSearch(Protocol):
    """The search of a part of a project."""

    def __call__(self) -> Iterable[UnmanagedObject | PartialSearch]:
        """Return objects that no stack manages, and further searches in place of their results.

        Raises:
            LakekeeperError: The server does not respond, or refuses a call.
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
        """Yield objects that no resource of the stack manages, and searches of the parts of the project.

        Raises:
            LakekeeperError: The server does not respond, or refuses a list.
        """
        enforces = self.client.server().keeps_tuples
        yield partial(self._search_roles, enforces=enforces)
        yield self._search_warehouses
        if enforces:
            yield self._read_identity
            for scoped_object in self.scope.list_scoped_objects():
                yield partial(self._search_grants, scoped_object)

    def _search_roles(self, *, enforces: bool) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield roles, and searches of their members."""
        listed_roles = roles.list_cached(self.client, self.scope.project_id)
        if not self.scope.shares_project:
            yield from self._compare_roles(listed_roles)
        if enforces:
            yield from self._list_member_searches({str(role["id"]) for role in listed_roles})

    def _search_warehouses(self) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield warehouses, and searches of the settings and contents of the stack's warehouses."""
        listed_warehouses = list(warehouse_calls.list_cached(self.client, self.scope.project_id).values())
        if not self.scope.shares_project:
            yield from self._compare_warehouses(listed_warehouses)
        active = [warehouse_calls.read_id(entry) for entry in listed_warehouses if entry.get("status") == "active"]
        own_warehouse_ids = [warehouse_id for warehouse_id in active if warehouse_id in self.scope.warehouses]
        yield from self._list_queue_searches(own_warehouse_ids)
        for warehouse_id in own_warehouse_ids:
            yield from self._list_protection_searches(warehouse_id)
            if self.tables:
                yield partial(self._search_contents, warehouse_id, None)

    def _read_identity(self) -> Iterator[UnmanagedObject]:
        """Read the calling user, which the concurrent searches of grants need next."""
        users.get_ourselves_cached(self.client)
        return iter(())

    @property
    def _server(self) -> str:
        return server_key(self.scope.server.get("endpoint"))

    def _compare_warehouses(self, responses: Iterable[warehouse_calls.WarehouseResponse]) -> Iterator[UnmanagedObject]:
        for entry in responses:
            key = (self._server, warehouse_calls.read_id(entry))
            if not self.scope.managed.has("warehouse", key):
                yield UnmanagedObject(to_lakekeeper_type("Warehouse"), str(entry["name"]), key[1], "warehouse", key)

    def _compare_roles(self, responses: Iterable[roles.RoleResponse]) -> Iterator[UnmanagedObject]:
        for role in responses:
            key = (self._server, str(role["id"]))
            is_own = (role.get("provider-id") or _OWN_PROVIDER) == _OWN_PROVIDER
            if is_own and not self.scope.managed.has("role", key):
                yield UnmanagedObject(to_lakekeeper_type("Role"), str(role["name"]), key[1], "role", key)

    def _list_member_searches(self, existing: set[str]) -> Iterator[PartialSearch]:
        """Yield searches for members of the stack's roles that the stack gives no members."""
        for role_id in self.scope.roles:
            if role_id in existing and not self.scope.managed.has("role members", (self._server, role_id)):
                yield partial(self._search_members, role_id)

    def _search_members(self, role_id: str) -> Iterator[UnmanagedObject]:
        role_members = members.list_members(self.client, self.scope.project_id, role_id) or frozenset()
        if unmanaged_members := sorted(
            f"{kind} {member}" for kind, member in role_members if not self._is_granted(role_id, member)
        ):
            key = (self._server, role_id)
            name = self.scope.roles[role_id]
            yield UnmanagedObject(to_lakekeeper_type("RoleMembers"), name, unmanaged_members, "role members", key)

    def _is_granted(self, role_id: str, member: str) -> bool:
        """Return whether a `Grant` of the stack makes a principal a member."""
        entries = (GrantEntry(ASSIGNEE, "user", member), GrantEntry(ASSIGNEE, "role", member))
        return any(
            self.scope.managed.has("grant", grant_key(self._server, "role", (role_id,), entry)) for entry in entries
        )

    def _search_grants(self, scoped_object: ScopedObject) -> Iterator[UnmanagedObject]:
        entries = self._read_grants(scoped_object)
        identity = users.get_ourselves_cached(self.client)
        for entry in sorted(entries - select_creator_grants(scoped_object.on.kind, entries, identity)):
            key = grant_key(self._server, scoped_object.on.kind, self._derive_object_path(scoped_object), entry)
            if entry.privilege == ASSIGNEE or self.scope.managed.has("grant", key):
                continue
            title = f"{entry.privilege} of {entry.kind} {self._find_principal_name(entry)} on {scoped_object.name}"
            yield UnmanagedObject(to_lakekeeper_type("Grant"), title, str(entry), "grant", key)

    def _find_principal_name(self, entry: GrantEntry) -> str:
        """Return the name of a role, or the id of a user."""
        if entry.kind != "role":
            return entry.principal
        try:
            listed_roles = roles.list_cached(self.client, self.scope.project_id)
        except RefusedError:
            return entry.principal  # the search of roles reports the refusal
        names = (str(role["name"]) for role in listed_roles if str(role["id"]) == entry.principal)
        return next(names, entry.principal)

    def _read_grants(self, scoped_object: ScopedObject) -> frozenset[GrantEntry]:
        """Return the grants on the object that has this name now; none if no object has it."""
        try:
            return grants.get_cached(self.client, scoped_object.on) or frozenset()
        except ForbiddenError:
            # OpenFGA refuses the id of a deleted object. Another object may have its name.
            current = self._find_current(scoped_object)
            if current is not None and current.object_id == scoped_object.on.object_id:
                raise
            return (grants.get_cached(self.client, current) if current else None) or frozenset()

    def _find_current(self, scoped_object: ScopedObject) -> Object | None:
        """Return the object that has the name of a namespace or table; for any other kind the object itself."""
        on, path = scoped_object.on, scoped_object.inside
        match on.kind:
            case "namespace":
                target = OnNamespace(type="namespace", warehouse_id=str(on.warehouse_id), namespace=".".join(path))
            case "table":
                namespace, name = ".".join(path[:-1]), path[-1]
                target = OnTabular(type="table", warehouse_id=str(on.warehouse_id), namespace=namespace, name=name)
            case _:
                return on
        return grant_target.resolve(self.client, target)

    def is_deleted(self) -> bool:
        """Return whether the project no longer exists. OpenFGA refuses its id then."""
        try:
            return projects.get_cached(self.client, self.scope.project_id) is None
        except ForbiddenError:
            return False

    @staticmethod
    def _derive_object_path(scoped_object: ScopedObject) -> tuple[str, ...]:
        top = scoped_object.on.project_id if scoped_object.on.kind == "project" else scoped_object.on.warehouse_id
        return (str(top), *scoped_object.inside)

    def _list_queue_searches(self, warehouse_ids: Iterable[str]) -> Iterator[PartialSearch]:
        scopes = [
            (Scope(warehouse_id, None), f"warehouse {self.scope.warehouses[warehouse_id]}")
            for warehouse_id in warehouse_ids
        ]
        for scope, title in scopes:
            for queue in self.client.server().queues:
                if queue != LOG_CLEANUP:
                    yield partial(self._search_queue, scope, queue, title)
        if LOG_CLEANUP in self.client.server().queues and not self.scope.shares_project:
            scope = Scope(None, self.scope.project_id)
            yield partial(self._search_queue, scope, LOG_CLEANUP, f"project {self.scope.project_id}")

    def _search_queue(self, scope: Scope, queue: str, title: str) -> Iterator[UnmanagedObject]:
        name = find_current_queue(queue)
        key = (self._server, scope.warehouse_id or scope.project_id or "", name)
        if self.scope.managed.has("task queue", key):
            return
        queue_config = task_queues.get(self.client, scope, queue)
        if queue_config and queue_config.is_set:
            heartbeat = {"max_seconds_since_last_heartbeat": queue_config.max_seconds_since_last_heartbeat}
            settings = {
                **queue_config.config,
                **{name: value for name, value in heartbeat.items() if value is not None},
            }
            title = f"{name} of {title}"
            yield UnmanagedObject(to_lakekeeper_type("TaskQueueConfig"), title, settings, "task queue", key)

    def _list_protection_searches(self, warehouse_id: str) -> Iterator[PartialSearch]:
        """Yield searches for protection of the stack's namespaces that the stack does not declare."""
        for owner, name in self.scope.namespaces:
            if owner == warehouse_id and (owner, name) not in self.scope.declares_protection:
                yield partial(self._search_protection, warehouse_id, name)

    def _search_protection(self, warehouse_id: str, name: str) -> Iterator[UnmanagedObject]:
        namespace = namespaces.get_cached(self.client, warehouse_id, tuple(name.split(".")))
        if namespace is not None and namespace.protected:
            title = f"{self.scope.warehouses[warehouse_id]}.{name}"
            key = (*inside_key(self._server, warehouse_id, name.split(".")), "protected")
            yield UnmanagedObject(
                to_lakekeeper_type("Namespace"), title, value=True, kind="protection", key=key, property="protected"
            )

    def _search_contents(self, warehouse_id: str, parent: Path | None) -> Iterator[UnmanagedObject | PartialSearch]:
        """Yield the namespaces below a parent, and searches of their tables and child namespaces."""
        for namespace in namespaces.list_cached(self.client, warehouse_id, parent):
            yield from self._compare_namespace(warehouse_id, namespace)
            yield partial(self._search_tables, warehouse_id, namespace.path)
            yield partial(self._search_contents, warehouse_id, namespace.path)

    def _compare_namespace(self, warehouse_id: str, namespace: ListedNamespace) -> Iterator[UnmanagedObject]:
        key = inside_key(self._server, warehouse_id, namespace.path)
        if not self.scope.managed.has("namespace", key):
            title = f"{self.scope.warehouses[warehouse_id]}.{'.'.join(namespace.path)}"
            yield UnmanagedObject(to_lakekeeper_type("Namespace"), title, namespace.namespace_id, "namespace", key)

    def _search_tables(self, warehouse_id: str, path: Path) -> Iterator[UnmanagedObject]:
        warehouse = self.scope.warehouses[warehouse_id]
        for tabular in tabulars.live(self.client, warehouse_id, path):
            key = inside_key(self._server, warehouse_id, (*tabular.namespace, tabular.name))
            if not self.scope.managed.has("table", key):
                title = (
                    f"{warehouse}.{tabular}" if tabular.kind == "table" else f"{warehouse}.{tabular} ({tabular.kind})"
                )
                yield UnmanagedObject(to_lakekeeper_type("Table"), title, tabular.tabular_id, "table", key)


def select_creator_grants(
    kind: ObjectKind, entries: frozenset[GrantEntry], identity: str | None
) -> frozenset[GrantEntry]:
    """Return the ownership that the server grants to the creator of an object.

    Owners of namespaces and tables are their creators. A project or warehouse has one creator: the identity
    that reads if it is an owner, else the only owner. If neither holds, no owner is left out.
    """
    owners = frozenset(entry for entry in entries if entry.kind == "user" and entry.privilege in OWNERS[kind])
    if kind not in {"project", "warehouse"}:
        return owners
    creator_grants = frozenset(entry for entry in owners if entry.principal == identity)
    return creator_grants or (owners if len(owners) == 1 else frozenset())
