"""The objects of a Lakekeeper project, as they are read. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object
from lakewright.lakekeeper.api.connection.versions import Server
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.api.management.members import Member
from lakewright.lakekeeper.api.management.task_queues import QueueConfig


@dataclass(frozen=True)
class FoundNamespace:
    """A namespace, and properties that lists do not contain."""

    listed: ListedNamespace
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """Properties that do not belong to the server."""
    managed_access: bool = False

    @property
    def path(self) -> Path:
        """Levels, outermost first."""
        return self.listed.path

    @property
    def name(self) -> str:
        """Levels with dots between them."""
        return ".".join(self.listed.path)


@dataclass(frozen=True)
class FoundWarehouse:
    """A warehouse and its contents."""

    response: warehouses.WarehouseResponse
    namespaces: tuple[FoundNamespace, ...] = ()
    tabulars: tuple[Tabular, ...] = ()
    """Tables, views and generic tables, soft-deleted tables included."""
    metadata: Mapping[Tabular, Mapping[str, Any]] = field(default_factory=dict[Tabular, Mapping[str, Any]])
    """Metadata of tables, if it was read."""
    queues: Mapping[str, QueueConfig] = field(default_factory=dict[str, QueueConfig])
    """Task queues whose settings are not the server's own."""
    managed_access: bool = False

    @property
    def name(self) -> str:
        """Name of the warehouse."""
        return str(self.response["name"])

    @property
    def warehouse_id(self) -> str:
        """Id of the warehouse."""
        return warehouses.read_id(self.response)


@dataclass(frozen=True)
class FoundGrant:
    """A grant, with the names of its object."""

    on: Object
    entry: GrantEntry
    warehouse: str = ""
    inside: tuple[str, ...] = ()
    """Levels of the namespace, and for a table its name at the end."""

    @property
    def target(self) -> str:
        """Kind and name of the object."""
        name = ".".join(part for part in (self.warehouse, *self.inside) if part)
        return f"{self.on.kind} {name}".rstrip()


@dataclass(frozen=True)
class ProjectObjects:
    """A project and everything in it that one identity can see."""

    project_id: str
    name: str
    server: Server
    warehouses: tuple[FoundWarehouse, ...] = ()
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Roles by id."""
    members: Mapping[str, frozenset[Member]] = field(default_factory=dict[str, frozenset[Member]])
    """Members by the role's id."""
    grants: tuple[FoundGrant, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of users by id."""
    identity: str | None = None
    """Id of the user who reads; None without authentication."""
    unread: tuple[str, ...] = ()
    """Parts that could not be read, each as one sentence."""

    @property
    def enforces_grants(self) -> bool:
        """Return whether roles and grants have an effect."""
        return self.server.keeps_tuples

    def role_name(self, role_id: str) -> str | None:
        """Return the name of a role of the project."""
        role = self.roles.get(role_id)
        return str(role["name"]) if role else None
