"""Lakekeeper as Pulumi resources. `api` beneath is a plain client without Pulumi."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakewright.lakekeeper.provider import former_paths

if TYPE_CHECKING:
    from lakewright.lakekeeper.grants.grant import Grant
    from lakewright.lakekeeper.grants.grants import Grants
    from lakewright.lakekeeper.identity.role import Role
    from lakewright.lakekeeper.identity.role_members import RoleMembers
    from lakewright.lakekeeper.identity.user import User
    from lakewright.lakekeeper.lookups.catalog import (
        get_catalog_config,
        get_catalog_config_output,
        get_deleted_tables,
        get_deleted_tables_output,
        get_namespace,
        get_namespace_output,
        get_namespaces,
        get_namespaces_output,
    )
    from lakewright.lakekeeper.lookups.identity import (
        get_grants,
        get_grants_output,
        get_role,
        get_role_members,
        get_role_members_output,
        get_role_output,
        get_roles,
        get_roles_output,
        get_user,
        get_user_output,
        get_users,
        get_users_output,
    )
    from lakewright.lakekeeper.lookups.server import (
        get_project,
        get_project_output,
        get_projects,
        get_projects_output,
        get_server_info,
        get_server_info_output,
    )
    from lakewright.lakekeeper.lookups.tables import (
        get_table,
        get_table_output,
        get_tables,
        get_tables_output,
        get_view,
        get_view_output,
        get_views,
        get_views_output,
    )
    from lakewright.lakekeeper.server.bootstrap import Bootstrap
    from lakewright.lakekeeper.server.project import Project
    from lakewright.lakekeeper.server.shared_project import SharedProject
    from lakewright.lakekeeper.storage.external_id import ExternalId
    from lakewright.lakekeeper.table.resource import Table
    from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuard
    from lakewright.lakekeeper.view.resource import View
    from lakewright.lakekeeper.warehouse.lookup import (
        get_warehouse,
        get_warehouse_output,
        get_warehouses,
        get_warehouses_output,
    )
    from lakewright.lakekeeper.warehouse.namespace import Namespace
    from lakewright.lakekeeper.warehouse.resource import Warehouse
    from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfig

__all__ = [
    "Bootstrap",
    "DeletionGuard",
    "ExternalId",
    "Grant",
    "Grants",
    "Namespace",
    "Project",
    "Role",
    "RoleMembers",
    "SharedProject",
    "Table",
    "TaskQueueConfig",
    "User",
    "View",
    "Warehouse",
    "get_catalog_config",
    "get_catalog_config_output",
    "get_deleted_tables",
    "get_deleted_tables_output",
    "get_grants",
    "get_grants_output",
    "get_namespace",
    "get_namespace_output",
    "get_namespaces",
    "get_namespaces_output",
    "get_project",
    "get_project_output",
    "get_projects",
    "get_projects_output",
    "get_role",
    "get_role_members",
    "get_role_members_output",
    "get_role_output",
    "get_roles",
    "get_roles_output",
    "get_server_info",
    "get_server_info_output",
    "get_table",
    "get_table_output",
    "get_tables",
    "get_tables_output",
    "get_user",
    "get_user_output",
    "get_users",
    "get_users_output",
    "get_view",
    "get_view_output",
    "get_views",
    "get_views_output",
    "get_warehouse",
    "get_warehouse_output",
    "get_warehouses",
    "get_warehouses_output",
]

_FILES = {
    "Bootstrap": "server.bootstrap",
    "DeletionGuard": "tenant.deletion_guard",
    "ExternalId": "storage.external_id",
    "Grant": "grants.grant",
    "Grants": "grants.grants",
    "Namespace": "warehouse.namespace",
    "Project": "server.project",
    "Role": "identity.role",
    "RoleMembers": "identity.role_members",
    "SharedProject": "server.shared_project",
    "User": "identity.user",
    "Table": "table.resource",
    "TaskQueueConfig": "warehouse.task_queue_config",
    "View": "view.resource",
    "Warehouse": "warehouse.resource",
    "get_catalog_config": "lookups.catalog",
    "get_catalog_config_output": "lookups.catalog",
    "get_deleted_tables": "lookups.catalog",
    "get_deleted_tables_output": "lookups.catalog",
    "get_grants": "lookups.identity",
    "get_grants_output": "lookups.identity",
    "get_namespace": "lookups.catalog",
    "get_namespace_output": "lookups.catalog",
    "get_namespaces": "lookups.catalog",
    "get_namespaces_output": "lookups.catalog",
    "get_project": "lookups.server",
    "get_project_output": "lookups.server",
    "get_projects": "lookups.server",
    "get_projects_output": "lookups.server",
    "get_role": "lookups.identity",
    "get_role_members": "lookups.identity",
    "get_role_members_output": "lookups.identity",
    "get_role_output": "lookups.identity",
    "get_roles": "lookups.identity",
    "get_roles_output": "lookups.identity",
    "get_server_info": "lookups.server",
    "get_server_info_output": "lookups.server",
    "get_table": "lookups.tables",
    "get_table_output": "lookups.tables",
    "get_tables": "lookups.tables",
    "get_tables_output": "lookups.tables",
    "get_user": "lookups.identity",
    "get_user_output": "lookups.identity",
    "get_users": "lookups.identity",
    "get_users_output": "lookups.identity",
    "get_view": "lookups.tables",
    "get_view_output": "lookups.tables",
    "get_views": "lookups.tables",
    "get_views_output": "lookups.tables",
    "get_warehouse": "warehouse.lookup",
    "get_warehouse_output": "warehouse.lookup",
    "get_warehouses": "warehouse.lookup",
    "get_warehouses_output": "warehouse.lookup",
}

former_paths.install()


def __getattr__(name: str) -> Any:
    # Importing Pulumi takes most of a second, which users of the client alone do without.
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
