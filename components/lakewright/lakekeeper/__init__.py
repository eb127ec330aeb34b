"""Lakekeeper as Pulumi resources. `api` beneath is a plain client without Pulumi."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakewright.lakekeeper.bootstrap import Bootstrap
    from lakewright.lakekeeper.deletion_guard import DeletionGuard
    from lakewright.lakekeeper.external_id import ExternalId
    from lakewright.lakekeeper.grant import Grant
    from lakewright.lakekeeper.grants import Grants
    from lakewright.lakekeeper.lookup_catalog import (
        get_catalog_config,
        get_catalog_config_output,
        get_deleted_tables,
        get_deleted_tables_output,
        get_namespace,
        get_namespace_output,
        get_namespaces,
        get_namespaces_output,
        get_warehouse,
        get_warehouse_output,
        get_warehouses,
        get_warehouses_output,
    )
    from lakewright.lakekeeper.lookup_identity import (
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
    from lakewright.lakekeeper.lookup_server import (
        get_project,
        get_project_output,
        get_projects,
        get_projects_output,
        get_server_info,
        get_server_info_output,
    )
    from lakewright.lakekeeper.lookup_tables import (
        get_table,
        get_table_output,
        get_tables,
        get_tables_output,
        get_view,
        get_view_output,
        get_views,
        get_views_output,
    )
    from lakewright.lakekeeper.namespace import Namespace
    from lakewright.lakekeeper.project import Project
    from lakewright.lakekeeper.role import Role
    from lakewright.lakekeeper.role_members import RoleMembers
    from lakewright.lakekeeper.table import Table
    from lakewright.lakekeeper.task_queue_config import TaskQueueConfig
    from lakewright.lakekeeper.user import User
    from lakewright.lakekeeper.warehouse import Warehouse

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
    "Table",
    "TaskQueueConfig",
    "User",
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
    "Bootstrap": "bootstrap",
    "DeletionGuard": "deletion_guard",
    "ExternalId": "external_id",
    "Grant": "grant",
    "Grants": "grants",
    "Namespace": "namespace",
    "Project": "project",
    "Role": "role",
    "RoleMembers": "role_members",
    "User": "user",
    "Table": "table",
    "TaskQueueConfig": "task_queue_config",
    "Warehouse": "warehouse",
    "get_catalog_config": "lookup_catalog",
    "get_catalog_config_output": "lookup_catalog",
    "get_deleted_tables": "lookup_catalog",
    "get_deleted_tables_output": "lookup_catalog",
    "get_grants": "lookup_identity",
    "get_grants_output": "lookup_identity",
    "get_namespace": "lookup_catalog",
    "get_namespace_output": "lookup_catalog",
    "get_namespaces": "lookup_catalog",
    "get_namespaces_output": "lookup_catalog",
    "get_project": "lookup_server",
    "get_project_output": "lookup_server",
    "get_projects": "lookup_server",
    "get_projects_output": "lookup_server",
    "get_role": "lookup_identity",
    "get_role_members": "lookup_identity",
    "get_role_members_output": "lookup_identity",
    "get_role_output": "lookup_identity",
    "get_roles": "lookup_identity",
    "get_roles_output": "lookup_identity",
    "get_server_info": "lookup_server",
    "get_server_info_output": "lookup_server",
    "get_table": "lookup_tables",
    "get_table_output": "lookup_tables",
    "get_tables": "lookup_tables",
    "get_tables_output": "lookup_tables",
    "get_user": "lookup_identity",
    "get_user_output": "lookup_identity",
    "get_users": "lookup_identity",
    "get_users_output": "lookup_identity",
    "get_view": "lookup_tables",
    "get_view_output": "lookup_tables",
    "get_views": "lookup_tables",
    "get_views_output": "lookup_tables",
    "get_warehouse": "lookup_catalog",
    "get_warehouse_output": "lookup_catalog",
    "get_warehouses": "lookup_catalog",
    "get_warehouses_output": "lookup_catalog",
}


def __getattr__(name: str) -> Any:
    # Importing Pulumi takes most of a second, which users of the client alone do without.
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
