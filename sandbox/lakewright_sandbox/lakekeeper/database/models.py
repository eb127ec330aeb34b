"""The tables of the server's database. Times are microseconds since the epoch, UTC; ids are UUID strings."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

ACTIVE_TASK = ("SCHEDULED", "RUNNING", "STOPPING")


class LakekeeperBase(DeclarativeBase):
    """Base of the tables, with the column types of Python types."""

    type_annotation_map = {dict[str, Any]: JSON, list[str]: JSON, list[int]: JSON, int: BigInteger}


class ServerRow(LakekeeperBase):
    """The server itself, a single row."""

    __tablename__ = "server"
    server_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    bootstrapped: Mapped[bool]


class ProjectRow(LakekeeperBase):
    """A project."""

    __tablename__ = "project"
    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    name: Mapped[str]
    created_at: Mapped[int]


class UserRow(LakekeeperBase):
    """A user of the whole server. `id` is `<identity provider>~<subject>`. A deleted user keeps the row."""

    __tablename__ = "user_account"
    id: Mapped[str] = mapped_column(String(256), primary_key=True)
    name: Mapped[str]
    email: Mapped[str | None]
    user_type: Mapped[str]
    last_updated_with: Mapped[str]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]
    deleted_at: Mapped[int | None]


class RoleRow(LakekeeperBase):
    """A role of a project. `provider_id` and `source_id` name the system that manages its members."""

    __tablename__ = "role"
    __table_args__ = (
        UniqueConstraint("project_id", "name_key", name="role_name"),
        UniqueConstraint("project_id", "provider_id", "source_id", name="role_source"),
    )
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    name_key: Mapped[str]
    description: Mapped[str | None]
    provider_id: Mapped[str]
    source_id: Mapped[str]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]


class TagDefinitionRow(LakekeeperBase):
    """A tag that is defined in a project."""

    __tablename__ = "tag_definition"
    __table_args__ = (UniqueConstraint("project_id", "name_key", name="tag_definition_name"),)
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    name_key: Mapped[str]
    description: Mapped[str | None]
    scope: Mapped[list[str]]
    value_kind: Mapped[str] = mapped_column(String(16))
    allowed_values: Mapped[list[str] | None] = mapped_column(JSON)
    created_at: Mapped[int]
    updated_at: Mapped[int | None]


class GrantRow(LakekeeperBase):
    """A relation of a user or role to an object: privilege, ownership, membership. OpenFGA calls it a tuple.

    `object_kind` is `server`, `project`, `role`, `tag-definition`, or what is in a project: `warehouse`, `namespace`,
    `table`, `view`, `generic-table`.
    """

    __tablename__ = "privilege_grant"
    __table_args__ = (
        UniqueConstraint("object_kind", "object_id", "relation", "subject_kind", "subject_id"),
        Index("grant_subject", "subject_kind", "subject_id"),
    )
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    object_kind: Mapped[str] = mapped_column(String(16))
    object_id: Mapped[str] = mapped_column(String(128))
    relation: Mapped[str] = mapped_column(String(256))
    subject_kind: Mapped[str] = mapped_column(String(8))
    subject_id: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[int]


class SecretRow(LakekeeperBase):
    """Storage credentials. Only the storage layer reads them; no response contains them."""

    __tablename__ = "secret"
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    payload: Mapped[dict[str, Any]]


class WarehouseRow(LakekeeperBase):
    """A warehouse of a project."""

    __tablename__ = "warehouse"
    __table_args__ = (UniqueConstraint("project_id", "name_key"),)
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    name_key: Mapped[str]
    storage_profile: Mapped[dict[str, Any]]
    secret_id: Mapped[str | None]
    credential_type: Mapped[str | None]
    delete_profile: Mapped[dict[str, Any]]
    active: Mapped[bool]
    protected: Mapped[bool]
    managed_by: Mapped[str]
    allowed_format_versions: Mapped[list[int]]
    default_format_version: Mapped[int | None]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]


class WarehouseStatisticsRow(LakekeeperBase):
    """The number of a warehouse's tables and views in one hour."""

    __tablename__ = "warehouse_statistics"
    warehouse_id: Mapped[str] = mapped_column(ForeignKey("warehouse.id", ondelete="CASCADE"), primary_key=True)
    hour: Mapped[int] = mapped_column(primary_key=True)
    number_of_tables: Mapped[int]
    number_of_views: Mapped[int]
    updated_at: Mapped[int]


class NamespaceRow(LakekeeperBase):
    """A namespace. `path` is the parts of its name, `path_key` the same case-folded and joined by 0x1F."""

    __tablename__ = "namespace"
    __table_args__ = (UniqueConstraint("warehouse_id", "path_key"), Index("namespace_children", "parent_id"))
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    warehouse_id: Mapped[str] = mapped_column(ForeignKey("warehouse.id"))
    parent_id: Mapped[str | None]
    path: Mapped[list[str]]
    path_key: Mapped[str]
    properties: Mapped[dict[str, Any]]
    protected: Mapped[bool]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]


class TabularRow(LakekeeperBase):
    """A table, a view or a generic table. `metadata_location` is null while a table is only staged.

    An id is unique in its warehouse alone: two warehouses can register one table. Names are unique among tabulars that
    are not soft-deleted. Source: the migration `reusable_table_id` of Lakekeeper 0.10.
    """

    __tablename__ = "tabular"
    __table_args__ = (
        Index(
            "tabular_name",
            "namespace_id",
            "name_key",
            unique=True,
            sqlite_where=text("deleted_at IS NULL"),
            postgresql_where=text("deleted_at IS NULL"),
        ),
        Index("tabular_location", "warehouse_id", "location"),
    )
    warehouse_id: Mapped[str] = mapped_column(ForeignKey("warehouse.id"), primary_key=True)
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    namespace_id: Mapped[str] = mapped_column(ForeignKey("namespace.id"))
    kind: Mapped[str] = mapped_column(String(16))
    name: Mapped[str]
    name_key: Mapped[str]
    location: Mapped[str]
    metadata_location: Mapped[str | None]
    document: Mapped[str] = mapped_column(Text)
    protected: Mapped[bool]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]
    deleted_at: Mapped[int | None]
    expires_at: Mapped[int | None]


class FormerParentRow(LakekeeperBase):
    """The namespace in which a table or view was created that has moved since. Null after its deletion.

    OpenFGA has this namespace as parent: a rename of Lakekeeper 0.11 to 0.14 does not call the authorizer.
    """

    __tablename__ = "former_parent"
    warehouse_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    tabular_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    namespace_id: Mapped[str | None]


class DefaultNamespaceRow(LakekeeperBase):
    """The default namespace of a stored version of a view. It cannot be dropped before the view."""

    __tablename__ = "view_default_namespace"
    warehouse_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    view_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    version_id: Mapped[int] = mapped_column(primary_key=True)
    namespace_id: Mapped[str] = mapped_column(String(36), index=True)


class TaskRow(LakekeeperBase):
    """A task of a queue."""

    __tablename__ = "task"
    __table_args__ = (Index("task_due", "status", "scheduled_for"),)
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    project_id: Mapped[str]
    warehouse_id: Mapped[str] = mapped_column(ForeignKey("warehouse.id", ondelete="CASCADE"))
    queue: Mapped[str]
    entity_kind: Mapped[str]
    entity_id: Mapped[str]
    entity_name: Mapped[list[str]]
    payload: Mapped[dict[str, Any]]
    status: Mapped[str]
    message: Mapped[str | None]
    attempt: Mapped[int]
    scheduled_for: Mapped[int]
    picked_up_at: Mapped[int | None]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]


class TaskQueueConfigRow(LakekeeperBase):
    """The configuration of a task queue. `scope` is a warehouse id, or a project id for the project's queues."""

    __tablename__ = "task_queue_config"
    scope: Mapped[str] = mapped_column(String(128), primary_key=True)
    queue: Mapped[str] = mapped_column(primary_key=True)
    config: Mapped[dict[str, Any]]
    max_seconds_since_last_heartbeat: Mapped[int | None]


class IdempotencyKeyRow(LakekeeperBase):
    """A used idempotency key. The response is null while the request runs, and has no secrets."""

    __tablename__ = "idempotency_key"
    warehouse_id: Mapped[str] = mapped_column(ForeignKey("warehouse.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(36), primary_key=True)
    endpoint: Mapped[str]
    status: Mapped[int | None]
    answer: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int]
