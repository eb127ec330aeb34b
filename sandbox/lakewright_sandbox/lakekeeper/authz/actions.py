"""The actions on each kind of object, in listing order, and the relation that each requires.

Source: section 5.4 of Lakekeeper's API and its OpenFGA model 4.9 (Apache-2.0). `model.py` has the rules of relations
that are specific to one action.
"""

from __future__ import annotations

READ_GRANTS = "read_grants"

SERVER = {
    "create_project": "manager",
    "update_users": "manager",
    "delete_users": "manager",
    "list_users": "manager",
    "provision_users": "manager",
    READ_GRANTS: "manager",
}
PROJECT = {
    "create_warehouse": "create",
    "delete": "modify",
    "rename": "modify",
    "get_metadata": "visible",
    "list_warehouses": "visible",
    "include_in_list": "visible",
    "create_role": "role_creator",
    "list_roles": "visible",
    "search_roles": "visible",
    "get_endpoint_statistics": "describe",
    "modify_task_queue_config": "modify",
    "get_task_queue_config": "visible",
    "get_project_tasks": "get_tasks",
    "control_project_tasks": "control_tasks",
    "create_tag": "tag_creator",
    "list_tags": "visible",
    READ_GRANTS: "read_assignments",
}
WAREHOUSE = {
    "create_namespace": "create",
    "delete": "modify",
    "update_storage": "modify",
    "update_storage_credential": "modify",
    "get_metadata": "visible",
    "get_config": "visible",
    "list_namespaces": "visible",
    "list_everything": "describe",
    "use": "visible",
    "include_in_list": "visible",
    "deactivate": "modify",
    "activate": "modify",
    "rename": "modify",
    "list_deleted_tabulars": "visible",
    "modify_soft_deletion": "modify",
    "get_task_queue_config": "visible",
    "modify_task_queue_config": "modify",
    "get_all_tasks": "describe",
    "control_all_tasks": "modify",
    "set_protection": "modify",
    "set_format_version_policy": "modify",
    "get_endpoint_statistics": "describe",
    "manage_tags": "manage_tags",
    "accept_moved_namespace": "accept_moved_namespace",
    READ_GRANTS: "read_assignments",
}
NAMESPACE = {
    "create_table": "create",
    "create_view": "create",
    "create_namespace": "create",
    "create_generic_table": "create",
    "delete": "modify",
    "update_properties": "modify",
    "get_metadata": "visible",
    "list_tables": "visible",
    "list_views": "visible",
    "list_namespaces": "visible",
    "list_generic_tables": "visible",
    "list_everything": "describe",
    "include_in_list": "visible",
    "set_protection": "modify",
    "manage_tags": "manage_tags",
    "move": "move",
    "accept_moved_namespace": "accept_moved_namespace",
    READ_GRANTS: "read_assignments",
}
TABLE = {
    "drop": "modify",
    "write_data": "modify",
    "read_data": "select",
    "get_metadata": "visible",
    "commit": "modify",
    "rename": "modify",
    "include_in_list": "visible",
    "undrop": "modify",
    "get_tasks": "describe",
    "control_tasks": "modify",
    "set_protection": "modify",
    "manage_tags": "manage_tags",
    READ_GRANTS: "read_assignments",
}
VIEW = {
    "drop": "modify",
    "get_metadata": "visible",
    "select": "select",
    "commit": "modify",
    "rename": "modify",
    "include_in_list": "visible",
    "undrop": "modify",
    "get_tasks": "describe",
    "control_tasks": "modify",
    "set_protection": "modify",
    "manage_tags": "manage_tags",
    READ_GRANTS: "read_assignments",
}
GENERIC_TABLE = {name: relation for name, relation in TABLE.items() if name != "commit"}
TAG = {
    "read": "visible",
    "update": "ownership",
    "delete": "ownership",
    "apply": "apply",
    "remove": "apply",
    "read_attachments": "visible",
    "include_in_list": "visible",
    READ_GRANTS: "read_assignments",
}
ROLE = {
    "read": "visible",
    "read_metadata": "anyone",
    "update": "grant_assignee",
    "delete": "grant_assignee",
    "read_role_assignments": "visible",
    "manage_role_assignments": "grant_assignee",
    "update_source_system": "grant_assignee",
}
USER = {
    "read": "anyone",
    "update": "self_or_manager",
    "delete": "self_or_manager",
    "read_role_assignments": "self_or_manager",
}

ACTIONS = {
    "server": SERVER,
    "project": PROJECT,
    "warehouse": WAREHOUSE,
    "namespace": NAMESPACE,
    "table": TABLE,
    "view": VIEW,
    "generic-table": GENERIC_TABLE,
    "tag-definition": TAG,
    "role": ROLE,
    "user": USER,
}
