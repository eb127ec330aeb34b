"""Read the objects of a Lakekeeper project: lists where the server has them, single reads at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lakewright.discovery.listing.project_objects import FoundGrant, FoundNamespace, FoundWarehouse, ProjectObjects
from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, RefusedError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, Object
from lakewright.lakekeeper.api.management import grants, managed_access, members, projects, roles, task_queues, users
from lakewright.lakekeeper.api.management import warehouses as warehouse_calls
from lakewright.lakekeeper.api.management.members import Member
from lakewright.lakekeeper.api.management.task_queues import SOFT_DELETION, QueueConfig, Scope

A = TypeVar("A")
B = TypeVar("B")

AT_ONCE = 8
"""Calls to one server at the same time."""


@dataclass(frozen=True)
class ReadDepth:
    """Parts to read besides lists of warehouses, namespaces, tables and roles."""

    tables: bool = True
    """Whether namespaces are searched for tables and views."""
    metadata: Callable[[str, Tabular], bool] | None = None
    """The tables whose metadata is read, by the warehouse's name and the table; None for none."""
    settings: bool = False
    """Whether queues, properties of namespaces and managed access are read, each with a call of its own."""
    namespace_grants: bool = True
    """Whether grants on namespaces are read, each with a call of its own."""


WHOLE = ReadDepth(metadata=lambda _warehouse, _table: True, settings=True)


@dataclass
class _Reader:
    client: Client
    depth: ReadDepth
    pool: ThreadPoolExecutor
    unread: list[str] = field(default_factory=list[str])

    def each(self, call: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """Return the results of a call for each item, in their order."""
        return list(self.pool.map(call, items))

    def attempt(self, what: str, call: Callable[[], B]) -> B | None:
        """Return the result of a call; None if the server refuses it, which is then reported."""
        try:
            return call()
        except RefusedError as refused:
            self.unread.append(f"{what} could not be read: {refused}")
            return None


def read_project(client: Client, project_id: str, depth: ReadDepth = WHOLE) -> ProjectObjects | None:
    """Return a project and what is in it; None if it does not exist.

    Raises:
        LakekeeperError: The server is unreachable, or refuses to show the project.
    """
    name = projects.name_of(client, project_id)
    if name is None:
        return None
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return _read(_Reader(client, depth, pool), project_id, name)


def list_projects(client: Client) -> dict[str, str]:
    """Return the names of the visible projects by id."""
    return projects.list_all(client)


def _read(reader: _Reader, project_id: str, name: str) -> ProjectObjects:
    client = reader.client
    server = client.server()
    listed = warehouse_calls.list_all(client, project_id)
    found_roles = reader.attempt("roles", lambda: roles.list_all(client, project_id)) or []
    by_id = {str(role["id"]): role for role in found_roles}
    found = tuple(_warehouse(reader, response) for response in listed)
    held = tuple(_grants(reader, project_id, found)) if server.keeps_tuples else ()
    people = _members(reader, project_id, by_id)
    return ProjectObjects(
        project_id,
        name,
        server,
        found,
        roles=by_id,
        members=people,
        grants=held,
        users=_users(reader, held, people),
        identity=users.ourselves(client) if server.keeps_tuples else None,
        unread=tuple(reader.unread),
    )


def _warehouse(reader: _Reader, response: dict[str, Any]) -> FoundWarehouse:
    found = FoundWarehouse(response)
    if response.get("status") != "active":
        return found
    client, depth, warehouse_id = reader.client, reader.depth, found.warehouse_id
    listed = list(_namespaces(reader, warehouse_id))
    inside = tuple(reader.each(lambda entry: _namespace(reader, warehouse_id, entry), listed))
    held: list[Tabular] = []
    if depth.tables:
        for some in reader.each(lambda entry: tabulars.live(client, warehouse_id, entry.path), listed):
            held += some
        held += (
            reader.attempt(f"soft-deleted tables of {found.name}", lambda: tabulars.dropped(client, warehouse_id)) or ()
        )
    wanted = [
        tabular
        for tabular in held
        if depth.metadata and tabular.kind == "table" and not tabular.dropped and depth.metadata(found.name, tabular)
    ]
    loaded = reader.each(lambda table: tables.load(client, warehouse_id, table.namespace, table.name), wanted)
    found = replace(
        found,
        namespaces=inside,
        tabulars=tuple(held),
        metadata={table: metadata for table, metadata in zip(wanted, loaded, strict=True) if metadata},
    )
    if not depth.settings:
        return found
    managed = client.server().keeps_tuples and managed_access.of_warehouse(client, warehouse_id)
    return replace(found, queues=_queues(reader, warehouse_id), managed_access=managed)


def _namespaces(reader: _Reader, warehouse_id: str) -> Iterator[ListedNamespace]:
    """Yield the namespaces level by level, the lists of one level at the same time."""
    level: list[Path] = [()]
    while level:
        lists = reader.each(lambda parent: namespaces.children(reader.client, warehouse_id, parent or None), level)
        found = [child for children in lists for child in children]
        yield from found
        level = [child.path for child in found]


def _namespace(reader: _Reader, warehouse_id: str, listed: ListedNamespace) -> FoundNamespace:
    client = reader.client
    if not reader.depth.settings:
        return FoundNamespace(listed)
    answer = namespaces.get(client, warehouse_id, listed.path) or {"properties": {}}
    own = {key: str(value) for key, value in answer["properties"].items() if key not in namespaces.SERVER_OWNED}
    namespace_id = listed.namespace_id or (namespaces.id_of(answer) if answer["properties"] else "")
    managed = bool(client.server().keeps_tuples and namespace_id and managed_access.of_namespace(client, namespace_id))
    return FoundNamespace(replace(listed, namespace_id=namespace_id), own, managed)


def _queues(reader: _Reader, warehouse_id: str) -> dict[str, QueueConfig]:
    client = reader.client
    names = [queue for queue in client.server().queues if queue != task_queues.LOG_CLEANUP]
    found = reader.each(lambda queue: task_queues.get(client, Scope(warehouse_id, None), queue), names)
    return {
        SOFT_DELETION if queue == client.server().soft_deletion_queue else queue: config
        for queue, config in zip(names, found, strict=True)
        if config and config.is_set
    }


def _members(reader: _Reader, project_id: str, found: dict[str, roles.RoleResponse]) -> dict[str, frozenset[Member]]:
    server = reader.client.server()
    if not server.has_role_members and not server.keeps_tuples:
        return {}

    def of_role(role_id: str) -> frozenset[Member]:
        what = f"members of role {found[role_id]['name']}"
        return reader.attempt(what, lambda: members.of_role(reader.client, project_id, role_id)) or frozenset()

    return dict(zip(found, reader.each(of_role, found), strict=True))


def _grants(reader: _Reader, project_id: str, found: Sequence[FoundWarehouse]) -> Iterator[FoundGrant]:
    targets = [FoundTarget(Object("project", project_id=project_id))]
    for warehouse in found:
        if warehouse.response.get("status") != "active":
            continue
        of = {"project_id": project_id, "warehouse_id": warehouse.warehouse_id}
        targets.append(FoundTarget(Object("warehouse", **of), warehouse.name))
        if reader.depth.namespace_grants:
            targets += [
                FoundTarget(Object("namespace", entry.listed.namespace_id, **of), warehouse.name, entry.path)
                for entry in warehouse.namespaces
                if entry.listed.namespace_id
            ]
        targets += [
            FoundTarget(Object("table", table.tabular_id, **of), warehouse.name, (*table.namespace, table.name))
            for table in warehouse.metadata
        ]
    for target, held in zip(targets, reader.each(lambda target: _held(reader, target.on), targets), strict=True):
        for entry in sorted(held):
            if entry.privilege != ASSIGNEE:
                yield FoundGrant(target.on, entry, target.warehouse, target.inside)


@dataclass(frozen=True)
class FoundTarget:
    """An object that may have grants, with its names."""

    on: Object
    warehouse: str = ""
    inside: tuple[str, ...] = ()


def _held(reader: _Reader, on: Object) -> frozenset[Any]:
    return reader.attempt(f"grants on {on.kind} {on.identity}", lambda: grants.held(reader.client, on)) or frozenset()


def _users(reader: _Reader, held: Sequence[FoundGrant], people: dict[str, frozenset[Member]]) -> dict[str, str]:
    """Return the names of the users that the project mentions, from the server's list."""
    named = {grant.entry.principal for grant in held if grant.entry.kind == "user"}
    named |= {member for found in people.values() for kind, member in found if kind == "user"}
    if not named:
        return {}
    try:
        listed = {name: users.get_cached(reader.client, name) for name in sorted(named)}
    except LakekeeperError:
        return {}  # names are comments only
    return {user_id: str(user["name"]) for user_id, user in listed.items() if user and user.get("name")}
