"""The action that each call requires on the object that its path or body names.

`PATH_ACTIONS` are about the innermost object of the path. `UNCHECKED` has the calls that check rights themselves or
that every caller may make, with the reason.
"""

from __future__ import annotations

MANAGEMENT = "/management/v1"
CATALOG = "/catalog/v1/{prefix}"
GENERIC = "/lakekeeper/v1/{prefix}"

_WAREHOUSE = f"{MANAGEMENT}/warehouse/{{warehouse_id}}"
_NAMESPACE = f"{_WAREHOUSE}/namespace/{{namespace_id}}"
_ROLE = f"{MANAGEMENT}/role/{{role_id}}"
_USER = f"{MANAGEMENT}/user/{{user_id}}"

UNCHECKED = {
    "GET /health": "reveals nothing",
    f"GET {MANAGEMENT}/info": "for every authenticated caller",
    f"POST {MANAGEMENT}/bootstrap": "once, for the first caller",
    f"GET {MANAGEMENT}/whoami": "about the caller alone",
    f"POST {MANAGEMENT}/user": "may be about the caller alone",
    f"POST {MANAGEMENT}/search/user": "for every authenticated caller",
    f"GET {MANAGEMENT}/project-list": "filtered",
    f"GET {MANAGEMENT}/grants": "not implemented where grants are enforced",
    f"GET {MANAGEMENT}/grants/grantable-privileges": "the same for every caller",
    f"POST {MANAGEMENT}/action/batch-check": "about rights",
}
OWN_ENDINGS = ("/grants", "/grantable-privileges", "/actions", "/sign")
OWN_PREFIXES = (f"{MANAGEMENT}/permissions/",)

# Calls about the project that body, query or header name.
PROJECT_ACTIONS = {
    f"POST {MANAGEMENT}/warehouse": "create_warehouse",
    f"POST {MANAGEMENT}/warehouse-creation-validation": "create_warehouse",
    f"GET {MANAGEMENT}/warehouse": "list_warehouses",
    f"POST {MANAGEMENT}/role": "create_role",
    f"GET {MANAGEMENT}/role": "list_roles",
    f"POST {MANAGEMENT}/tag-definition": "create_tag",
    f"GET {MANAGEMENT}/tag-definition": "list_tags",
    f"POST {MANAGEMENT}/search/role": "search_roles",
}
SERVER_ACTIONS = {
    f"POST {MANAGEMENT}/project": "create_project",
    f"GET {MANAGEMENT}/user": "list_users",
}
PATH_ACTIONS = {
    **{
        f"{method} {MANAGEMENT}/project{path}": action
        for path in ("", "/{project_id}")
        for method, action in (("GET", "get_metadata"), ("DELETE", "delete"))
    },
    f"POST {MANAGEMENT}/project/rename": "rename",
    f"POST {MANAGEMENT}/project/{{project_id}}/rename": "rename",
    f"GET {MANAGEMENT}/project/task-queue/task_log_cleanup/config": "get_task_queue_config",
    f"POST {MANAGEMENT}/project/task-queue/task_log_cleanup/config": "modify_task_queue_config",
    f"GET {_WAREHOUSE}": "get_metadata",
    f"DELETE {_WAREHOUSE}": "delete",
    f"POST {_WAREHOUSE}/activate": "activate",
    f"POST {_WAREHOUSE}/deactivate": "deactivate",
    f"POST {_WAREHOUSE}/rename": "rename",
    f"POST {_WAREHOUSE}/protection": "set_protection",
    f"POST {_WAREHOUSE}/storage": "update_storage",
    f"POST {_WAREHOUSE}/storage-credential": "update_storage",
    f"POST {_WAREHOUSE}/storage/validate-profile": "update_storage",
    f"POST {_WAREHOUSE}/storage/validate-credential": "update_storage",
    f"POST {_WAREHOUSE}/storage/validate-access": "update_storage",
    f"POST {_WAREHOUSE}/delete-profile": "modify_soft_deletion",
    f"POST {_WAREHOUSE}/format-version-policy": "set_format_version_policy",
    f"POST {_WAREHOUSE}/managed-by": "get_metadata",
    f"GET {_WAREHOUSE}/statistics": "get_metadata",
    f"GET {_WAREHOUSE}/task-queue/{{queue}}/config": "get_task_queue_config",
    f"POST {_WAREHOUSE}/task-queue/{{queue}}/config": "modify_task_queue_config",
    f"POST {_WAREHOUSE}/task/list": "get_all_tasks",
    f"GET {_WAREHOUSE}/task/by-id/{{task_id}}": "get_all_tasks",
    f"POST {_WAREHOUSE}/task/control": "control_all_tasks",
    f"GET {_WAREHOUSE}/deleted-tabulars": "list_deleted_tabulars",
    f"POST {_WAREHOUSE}/deleted-tabulars/undrop": "use",
    f"POST {_WAREHOUSE}/search-tabular": "use",
    f"GET {_NAMESPACE}/protection": "get_metadata",
    f"POST {_NAMESPACE}/protection": "set_protection",
    f"POST {_NAMESPACE}/move": "move",
    **{
        f"{method} {_WAREHOUSE}/{kind}/{{{kind.replace('-', '_')}_id}}/protection": action
        for kind in ("table", "view", "generic-table")
        for method, action in (("GET", "get_metadata"), ("POST", "set_protection"))
    },
    f"GET {MANAGEMENT}/tag-definition/{{tag_definition_id}}": "read",
    f"DELETE {MANAGEMENT}/tag-definition/{{tag_definition_id}}": "delete",
    f"GET {_ROLE}": "read",
    f"GET {_ROLE}/metadata": "read_metadata",
    f"POST {_ROLE}": "update",
    f"DELETE {_ROLE}": "delete",
    f"PUT {_ROLE}/source-system": "update_source_system",
    f"GET {_ROLE}/members": "read_role_assignments",
    f"GET {_ROLE}/members/transitive": "read_role_assignments",
    f"GET {_ROLE}/member-of": "read_role_assignments",
    f"GET {_ROLE}/member-of/transitive": "read_role_assignments",
    f"POST {_ROLE}/members": "manage_role_assignments",
    f"DELETE {_ROLE}/members/{{kind}}/{{member_id}}": "manage_role_assignments",
    f"GET {_USER}": "read",
    f"PUT {_USER}": "update",
    f"DELETE {_USER}": "delete",
    f"GET {_USER}/roles": "read_role_assignments",
    f"GET {_USER}/roles/transitive": "read_role_assignments",
}

_IN_NAMESPACE = f"{CATALOG}/namespaces/{{namespace}}"
_GENERIC = f"{GENERIC}/namespaces/{{namespace}}/generic-tables"
# Calls about the objects in their path. Creating, renaming and committing name more in the body: `catalog_targets.py`.
CATALOG_ACTIONS = {
    "GET /catalog/v1/config": "get_config",
    f"GET {CATALOG}/namespaces": "list_namespaces",
    f"POST {CATALOG}/namespaces": "create_namespace",
    f"GET {_IN_NAMESPACE}": "get_metadata",
    f"HEAD {_IN_NAMESPACE}": "get_metadata",
    f"DELETE {_IN_NAMESPACE}": "delete",
    f"POST {_IN_NAMESPACE}/properties": "update_properties",
    f"GET {_IN_NAMESPACE}/tables": "list_tables",
    f"POST {_IN_NAMESPACE}/tables": "create_table",
    f"POST {_IN_NAMESPACE}/register": "create_table",
    f"GET {_IN_NAMESPACE}/views": "list_views",
    f"POST {_IN_NAMESPACE}/views": "create_view",
    **{
        f"{method} {_IN_NAMESPACE}/{kind}s/{{{kind}}}": action
        for kind in ("table", "view")
        for method, action in (
            ("GET", "get_metadata"),
            ("HEAD", "get_metadata"),
            ("DELETE", "drop"),
            ("POST", "commit"),
        )
    },
    f"GET {_IN_NAMESPACE}/tables/{{table}}/credentials": "read_data",
    f"POST {_IN_NAMESPACE}/tables/{{table}}/metrics": "get_metadata",
    f"GET {_GENERIC}": "list_generic_tables",
    f"POST {_GENERIC}": "create_generic_table",
    f"GET {_GENERIC}/{{generic_table}}": "get_metadata",
    f"DELETE {_GENERIC}/{{generic_table}}": "drop",
    f"POST {GENERIC}/generic-tables/rename": "rename",
    f"POST {CATALOG}/tables/rename": "rename",
    f"POST {CATALOG}/views/rename": "rename",
    f"POST {CATALOG}/transactions/commit": "commit",
}


def is_unchecked(call: str) -> bool:
    """Return whether a call checks rights itself or needs none."""
    path = call.partition(" ")[2]
    return call in UNCHECKED or path.endswith(OWN_ENDINGS) or path.startswith(OWN_PREFIXES)
