"""Read the objects of a Lakekeeper project: lists where the server has them, single reads at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lakewright.discovery.listing.project_objects import FoundGrant, FoundNamespace, FoundWarehouse, ProjectObjects
from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars, views
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, RefusedError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry, Object
from lakewright.lakekeeper.api.management import (
    grants,
    limit_records,
    members,
    permissions,
    projects,
    roles,
    task_queues,
    users,
)
from lakewright.lakekeeper.api.management import warehouses as warehouse_calls
from lakewright.lakekeeper.api.management.members import Member
from lakewright.lakekeeper.api.management.task_queues import SOFT_DELETION, QueueConfig, Scope

A = TypeVar("A")
B = TypeVar("B")

MAX_CONCURRENT_CALLS = 8
"""Calls to one server at the same time."""


@dataclass(frozen=True)
class ReadDepth:
    """Parts to read besides lists of warehouses, namespaces, tables and roles."""

    tables: bool = True
    """Whether namespaces are searched for tables and views."""
    metadata: Callable[[str, Tabular], bool] | None = None
    """The tables and views whose metadata is read, by the warehouse's name and the object; None for none."""
    settings: bool = False
    """Whether queues, properties of namespaces and managed access are read, each with a call of its own."""
    namespace_grants: bool = True
    """Whether grants on namespaces are read, each with a call of its own."""


_LOADERS = {"table": tables.load, "view": views.load}
"""Calls that return the metadata of an object, by kind; generic tables have none."""

FULL_DEPTH = ReadDepth(metadata=lambda _warehouse, _table: True, settings=True)


@dataclass
class _Reader:
    client: Client
    depth: ReadDepth
    pool: ThreadPoolExecutor
    unread: list[str] = field(default_factory=list[str])

    def map_concurrently(self, call: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """Return the results of a call for each item, in their order."""
        return list(self.pool.map(call, items))

    def attempt(self, subject: str, call: Callable[[], B]) -> B | None:
        """Return the result of a call; None if the server refuses it, which is then reported."""
        try:
            return call()
        except RefusedError as refused:
            self.unread.append(f"{subject} could not be read: {refused}")
            return None


def read_project(client: Client, project_id: str, depth: ReadDepth = FULL_DEPTH) -> ProjectObjects | None:
    """Return a project and its contents; None if it does not exist.

    Raises:
        LakekeeperError: The server is unreachable, or refuses to show the project.
    """
    name = projects.read_name(client, project_id)
    if name is None:
        return None
    with ThreadPoolExecutor(MAX_CONCURRENT_CALLS) as pool:
        return _read(_Reader(client, depth, pool), project_id, name)


def list_projects(client: Client) -> dict[str, str]:
    """Return the names of the visible projects by id."""
    return projects.list_all(client)


def _read(reader: _Reader, project_id: str, name: str) -> ProjectObjects:
    client = reader.client
    server = client.server()
    responses = warehouse_calls.list_all(client, project_id)
    role_responses = reader.attempt("roles", lambda: roles.list_all(client, project_id)) or []
    by_id = {str(role["id"]): role for role in role_responses}
    live_warehouses = tuple(_read_warehouse(reader, response) for response in responses)
    project_grants = tuple(_read_grants(reader, project_id, live_warehouses)) if server.keeps_tuples else ()
    role_members = _read_members(reader, project_id, by_id)
    return ProjectObjects(
        project_id,
        name,
        server,
        live_warehouses,
        roles=by_id,
        members=role_members,
        grants=project_grants,
        users=_read_user_names(reader, project_grants, role_members),
        identity=users.ourselves(client) if server.keeps_tuples else None,
        unread=tuple(reader.unread),
    )


def _read_warehouse(reader: _Reader, response: dict[str, Any]) -> FoundWarehouse:
    warehouse = FoundWarehouse(response)
    if response.get("status") != "active":
        return warehouse
    client, depth, warehouse_id = reader.client, reader.depth, warehouse.warehouse_id
    listed_namespaces = list(_list_namespaces(reader, warehouse_id))
    detailed_namespaces = tuple(
        reader.map_concurrently(lambda entry: _read_namespace(reader, warehouse_id, entry), listed_namespaces)
    )
    contents: list[Tabular] = []
    if depth.tables:
        for batch in reader.map_concurrently(
            lambda entry: tabulars.live(client, warehouse_id, entry.path), listed_namespaces
        ):
            contents += batch
        contents += (
            reader.attempt(
                f"soft-deleted tables of {warehouse.name}", lambda: tabulars.list_dropped(client, warehouse_id)
            )
            or ()
        )
    tables_to_load = [
        tabular
        for tabular in contents
        if depth.metadata
        and tabular.kind in _LOADERS
        and not tabular.dropped
        and depth.metadata(warehouse.name, tabular)
    ]
    loaded = reader.map_concurrently(
        lambda tabular: _LOADERS[tabular.kind](client, warehouse_id, tabular.namespace, tabular.name), tables_to_load
    )
    warehouse = replace(
        warehouse,
        namespaces=detailed_namespaces,
        tabulars=tuple(contents),
        metadata={table: metadata for table, metadata in zip(tables_to_load, loaded, strict=True) if metadata},
    )
    if not depth.settings:
        return warehouse
    managed = client.server().keeps_tuples and permissions.read_warehouse_access(client, warehouse_id)
    return replace(warehouse, queues=_read_queues(reader, warehouse_id), managed_access=managed)


def _list_namespaces(reader: _Reader, warehouse_id: str) -> Iterator[ListedNamespace]:
    """Yield the namespaces level by level, the lists of one level at the same time."""
    level: list[Path] = [()]
    while level:
        lists = reader.map_concurrently(
            lambda parent: namespaces.list_children(reader.client, warehouse_id, parent or None), level
        )
        next_level = [child for children in lists for child in children]
        yield from next_level
        level = [child.path for child in next_level]


def _read_namespace(reader: _Reader, warehouse_id: str, listed_namespace: ListedNamespace) -> FoundNamespace:
    client = reader.client
    if not reader.depth.settings:
        return FoundNamespace(listed_namespace)
    response = namespaces.get(client, warehouse_id, listed_namespace.path) or {"properties": {}}
    user_properties = {
        key: str(value) for key, value in response["properties"].items() if key not in namespaces.SERVER_OWNED
    }
    namespace_id = listed_namespace.namespace_id or (namespaces.read_id(response) if response["properties"] else "")
    managed = bool(
        client.server().keeps_tuples and namespace_id and permissions.read_namespace_access(client, namespace_id)
    )
    return FoundNamespace(replace(listed_namespace, namespace_id=namespace_id), user_properties, managed)


def _read_queues(reader: _Reader, warehouse_id: str) -> dict[str, QueueConfig]:
    client = reader.client
    names = [queue for queue in client.server().queues if queue != task_queues.LOG_CLEANUP]
    configs = reader.map_concurrently(lambda queue: task_queues.get(client, Scope(warehouse_id, None), queue), names)
    return {
        SOFT_DELETION if queue == client.server().soft_deletion_queue else queue: config
        for queue, config in zip(names, configs, strict=True)
        if config and config.is_set
    }


def _read_members(
    reader: _Reader, project_id: str, roles_by_id: dict[str, roles.RoleResponse]
) -> dict[str, frozenset[Member]]:
    server = reader.client.server()
    if not server.has_role_members and not server.keeps_tuples:
        return {}

    def read_role_members(role_id: str) -> frozenset[Member]:
        subject = f"members of role {roles_by_id[role_id]['name']}"
        return reader.attempt(subject, lambda: members.list_members(reader.client, project_id, role_id)) or frozenset()

    return dict(zip(roles_by_id, reader.map_concurrently(read_role_members, roles_by_id), strict=True))


def _read_grants(reader: _Reader, project_id: str, live_warehouses: Sequence[FoundWarehouse]) -> Iterator[FoundGrant]:
    targets = [FoundTarget(Object("project", project_id=project_id))]
    for warehouse in live_warehouses:
        if warehouse.response.get("status") != "active":
            continue
        owner_ids = {"project_id": project_id, "warehouse_id": warehouse.warehouse_id}
        targets.append(FoundTarget(Object("warehouse", **owner_ids), warehouse.name))
        if reader.depth.namespace_grants:
            targets += [
                FoundTarget(Object("namespace", entry.listed.namespace_id, **owner_ids), warehouse.name, entry.path)
                for entry in warehouse.namespaces
                if entry.listed.namespace_id
            ]
        targets += [
            FoundTarget(Object("table", table.tabular_id, **owner_ids), warehouse.name, (*table.namespace, table.name))
            for table in warehouse.metadata
            if table.kind == "table"
        ]
    suspended = _read_suspended_grants(reader, project_id)
    for target, entries in zip(
        targets, reader.map_concurrently(lambda target: _read_object_grants(reader, target.on), targets), strict=True
    ):
        for entry in sorted(entries | suspended.get(target.on.identity, set())):
            if entry.privilege != ASSIGNEE:
                yield FoundGrant(target.on, entry, target.warehouse, target.inside)


@dataclass(frozen=True)
class FoundTarget:
    """An object that may have grants, with its names."""

    on: Object
    warehouse: str = ""
    inside: tuple[str, ...] = ()


def _read_object_grants(reader: _Reader, on: Object) -> frozenset[Any]:
    return (
        reader.attempt(f"grants on {on.kind} {on.identity}", lambda: grants.list_grants(reader.client, on))
        or frozenset()
    )


def _read_suspended_grants(reader: _Reader, project_id: str) -> dict[str, set[GrantEntry]]:
    """Return the grants that enforced limits suspend, by the object's id: they are declared, and come back."""
    marks = reader.attempt("enforced limits", lambda: limit_records.list_cached_marks(reader.client, project_id))
    entries: dict[str, set[GrantEntry]] = {}
    for grant in (grant for mark in marks or () for grant in mark.suspended):
        kind = "user" if grant.kind == "user" else "role"
        entries.setdefault(grant.object_id, set()).add(GrantEntry(grant.privilege, kind, grant.principal))
    return entries


def _read_user_names(
    reader: _Reader, project_grants: Sequence[FoundGrant], role_members: dict[str, frozenset[Member]]
) -> dict[str, str]:
    """Return the names of the users that the project mentions, from the server's list."""
    user_ids = {grant.entry.principal for grant in project_grants if grant.entry.kind == "user"}
    user_ids |= {
        member for members_of_role in role_members.values() for kind, member in members_of_role if kind == "user"
    }
    if not user_ids:
        return {}
    try:
        users_by_id = {name: users.get_cached(reader.client, name) for name in sorted(user_ids)}
    except LakekeeperError:
        return {}  # names are comments only
    return {user_id: str(user["name"]) for user_id, user in users_by_id.items() if user and user.get("name")}
