"""The resources of the fault matrix, a `Case` for each, and the small world that contains their objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.server.bootstrap import BootstrapProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider
from lakewright_sandbox.lakekeeper.database.models import (
    GrantRow,
    LakekeeperBase,
    NamespaceRow,
    ProjectRow,
    RoleRow,
    SecretRow,
    ServerRow,
    UserRow,
    WarehouseRow,
)
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from pulumi.dynamic import ResourceProvider
from sqlalchemy import delete, func, select

from tests.integration.provider.resource import Props

SECRETS = {"TOKEN": "t0ken-value", "KEY_ID": "AKIAXKEYID", "KEY": "s3cret-value", "NEW_KEY": "n3w-s3cret-value"}
"""Environment variables that hold secrets, which no message may contain."""

USERS = ("oidc~ann", "oidc~ben", "oidc~cy")

_numbers = count(1)


def storage(prefix: str, **more: Any) -> Props:
    bucket_props = {"bucket": "lake", "key_prefix": prefix, "region": "us-east-1", "endpoint": "http://s3.test:9000"}
    return {**bucket_props, "flavor": "s3-compat", "path_style_access": True, "sts_enabled": False, **more}


def access_key(secret: str = "KEY") -> Props:
    return {"type": "access-key", "access_key_id": "env:KEY_ID", "secret_access_key": f"env:{secret}"}


@dataclass
class World:
    """The project of one run, with a warehouse and a namespace that no call of the run may harm."""

    http: httpx.Client
    lakekeeper: Lakekeeper
    project: str = field(default_factory=lambda: f"run-{next(_numbers)}")
    bystander: str = ""
    role: str = ""

    def __post_init__(self) -> None:
        self.reopen()
        self.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
        self.post("/management/v1/project", {"project-id": self.project, "project-name": "run"})
        self.bystander = self.make_warehouse("bystander")
        self.post(f"/catalog/v1/{self.bystander}/namespaces", {"namespace": ["kept"], "properties": {"owner": "x"}})
        for user in USERS:
            person = {"id": user, "name": user, "user-type": "human", "update-if-exists": True}
            self.post("/management/v1/user", person)
        self.role = str(self.post("/management/v1/role", {"name": "kept"})["id"])
        grant_writes = {"writes": [{"privilege": "use", "principal": {"user": USERS[0]}}]}
        self.post(f"/management/v1/warehouse/{self.bystander}/grants", grant_writes)

    def post(self, path: str, body: Props) -> Props:
        response = self.http.post(path, json=body, headers={"x-project-id": self.project})
        assert response.is_success, response.text
        return response.json() if response.content else {}

    def make_warehouse(self, name: str) -> str:
        profile = {key.replace("_", "-"): value for key, value in storage(name).items()} | {"type": "s3"}
        return self.post("/management/v1/warehouse", {"warehouse-name": name, "storage-profile": profile})["id"]

    def make_namespaces(self, warehouse_id: str, *paths: str) -> None:
        for path in paths:
            self.post(f"/catalog/v1/{warehouse_id}/namespaces", {"namespace": path.split(".")})

    def leave_deleted_user(self) -> None:
        """Make and delete the user of the run: the server keeps the rows of deleted users."""
        user_id = f"oidc~{self.project}"
        self.post("/management/v1/user", {"id": user_id, "name": "Dee", "user-type": "human"})
        response = self.http.delete(f"/management/v1/user/{user_id}")
        assert response.is_success, response.text

    def reopen(self) -> None:
        """Reset the bootstrap as `lakekeeper reopen-bootstrap` does."""
        with self.lakekeeper.database.write() as session:
            session.scalars(select(ServerRow)).one().bootstrapped = False
            session.execute(delete(ProjectRow).where(ProjectRow.id == self.lakekeeper.settings.default_project))

    def snapshot(self) -> dict[str, Any]:
        """Return this run's objects on the server, all its grants, projects and users, and the number of secrets."""
        with self.lakekeeper.database.read() as session:
            warehouses = session.scalars(select(WarehouseRow).where(WarehouseRow.project_id == self.project)).all()
            ids = [warehouse.id for warehouse in warehouses]
            namespaces = session.scalars(select(NamespaceRow).where(NamespaceRow.warehouse_id.in_(ids))).all()
            roles = session.scalars(select(RoleRow).where(RoleRow.project_id == self.project)).all()
            grants = session.scalars(select(GrantRow)).all()
            return {
                "projects": set(session.scalars(select(ProjectRow.id))),
                "users": set(session.scalars(select(UserRow.id).where(UserRow.deleted_at.is_(None)))),
                "grants": {(grant.object_id, grant.relation, grant.subject_id) for grant in grants},
                "roles": {role.id: _columns(role) for role in roles},
                "secrets": session.scalar(select(func.count()).select_from(SecretRow)),
                "warehouses": {warehouse.id: _columns(warehouse) for warehouse in warehouses},
                "namespaces": {namespace.id: _columns(namespace) for namespace in namespaces},
            }


def _columns(row: LakekeeperBase) -> Props:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


@dataclass(frozen=True)
class Case:
    """A resource: its declaration in a world, and the changes of an update.

    `fill` puts something into the object that its deletion must remove too. `wipe` prepares a world for a creation.
    """

    name: str
    provider: Callable[[], ResourceProvider]
    declare: Callable[[World], Props]
    changed: Callable[[World], Props] | None = None
    fill: Callable[[World, str], None] = lambda _world, _id: None
    wipe: Callable[[World], None] = lambda _world: None
    grants: int = 0
    """Number of grant entries that the first and the changed declaration create."""
    outlives_resource: bool = False
    """Whether the object remains after its resource is deleted."""


CASES = [
    Case(
        "bootstrap",
        BootstrapProvider,
        lambda world: {"accept_terms_of_use": True},
        wipe=World.reopen,
        outlives_resource=True,
    ),
    Case(
        "project",
        ProjectProvider,
        lambda world: {"project_id": f"{world.project}-own", "name": "tenant"},
        lambda world: {"name": "renamed"},
    ),
    Case(
        "warehouse",
        WarehouseProvider,
        lambda world: {
            "project_id": world.project,
            "name": "main",
            "storage": storage("main"),
            "credential": access_key(),
            "delete_profile": {"type": "soft", "expiration_seconds": 60},
            "protected": True,
            "deletion": "purge",
        },
        lambda world: {
            "name": "other",
            "storage": storage("main", endpoint="http://s3.other:9000"),
            "credential": access_key("NEW_KEY"),
            "delete_profile": {"type": "hard"},
            "protected": False,
            "active": False,
            "allowed_format_versions": [2],
        },
        fill=lambda world, warehouse_id: world.make_namespaces(warehouse_id, "a", "a.b", "c"),
    ),
    Case(
        "warehouse whose key alone changes",
        WarehouseProvider,
        lambda world: {
            "project_id": world.project,
            "name": "main",
            "storage": storage("main"),
            "credential": access_key(),
            "active": False,
        },
        lambda world: {"credential": access_key("NEW_KEY")},
    ),
    Case(
        "queue",
        TaskQueueConfigProvider,
        lambda world: {"warehouse_id": world.bystander, "queue": "tabular_purge", "config": {"a": 1}},
        lambda world: {"config": {"a": 2}, "max_seconds_since_last_heartbeat": 60},
        outlives_resource=True,
    ),
    Case(
        "namespace",
        NamespaceProvider,
        lambda world: {
            "warehouse_id": world.bystander,
            "name": "own",
            "properties": {"owner": "a", "gone": "b"},
            "protected": True,
            "deletion": "purge",
        },
        lambda world: {"properties": {"owner": "b", "new": "c"}, "protected": False},
        fill=lambda world, _id: world.make_namespaces(world.bystander, "own.a", "own.a.b"),
    ),
    Case(
        "user",
        UserProvider,
        lambda world: {"user_id": f"oidc~{world.project}", "name": "Dee", "user_type": "human"},
        lambda world: {"name": "Dee Dee", "email": "dee@x.example"},
    ),
    Case(
        "deleted user",
        UserProvider,
        lambda world: {"user_id": f"oidc~{world.project}", "name": "Dee", "user_type": "human"},
        wipe=World.leave_deleted_user,
    ),
    Case(
        "role",
        RoleProvider,
        lambda world: {"project_id": world.project, "name": "own", "description": "a"},
        lambda world: {"name": "other", "description": "b", "provider_id": "okta", "source_id": "7"},
    ),
    Case(
        "members",
        RoleMembersProvider,
        lambda world: {"project_id": world.project, "role_id": world.role, "users": USERS[:2], "declared_as": "m"},
        lambda world: {"users": USERS[1:]},
        grants=2,
    ),
    Case(
        "grant",
        GrantProvider,
        lambda world: {
            "on": {"type": "warehouse", "warehouse_id": world.bystander},
            "privilege": "use",
            "user": USERS[1],
            "declared_as": "g",
        },
        grants=1,
    ),
    Case(
        "grants",
        GrantsProvider,
        lambda world: {
            "on": {"type": "project", "project_id": world.project},
            "grants": [{"privilege": "rename", "user": user} for user in USERS[:2]],
            "declared_as": "gs",
        },
        lambda world: {"grants": [{"privilege": "delete", "user": user} for user in USERS[1:]]},
        grants=2,
    ),
]
