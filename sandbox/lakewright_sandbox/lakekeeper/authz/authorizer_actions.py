"""The actions of the permissions API: the authorizer's own and some of the catalog's."""

from __future__ import annotations

from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS

_GRANT_ALL = {name: name for name in ("grant_describe", "grant_modify", "grant_select")}
_GRANT_OBJECT = {
    "read_assignments": "read_assignments",
    "grant_create": "grant_create",
    **_GRANT_ALL,
    "grant_pass_grants": "grant_pass_grants",
    "grant_manage_grants": "grant_manage_grants",
    "grant_manage_tags": "grant_manage_tags",
    "change_ownership": "grant_ownership",
}
_GRANT_TABULAR = {name: relation for name, relation in _GRANT_OBJECT.items() if name != "grant_create"}
_GRANT_PROJECT = {
    "read_assignments": "read_assignments",
    "grant_role_creator": "grant_role_creator",
    "grant_tag_creator": "grant_tag_creator",
    "grant_create": "grant_create",
    **_GRANT_ALL,
    "grant_project_admin": "grant_project_admin",
    "grant_security_admin": "grant_security_admin",
    "grant_data_admin": "grant_data_admin",
}

# The authorizer's own actions by kind, with the relation that each needs.
AUTHORIZER_ACTIONS = {
    "server": {"read_assignments": "read_assignments", "grant_admin": "grant_admin"},
    "project": _GRANT_PROJECT,
    "warehouse": _GRANT_OBJECT,
    "namespace": {name: relation for name, relation in _GRANT_OBJECT.items() if name != "change_ownership"},
    "table": _GRANT_TABULAR,
    "view": _GRANT_TABULAR,
    "generic-table": {name: relation for name, relation in _GRANT_TABULAR.items() if name != "grant_create"},
    "role": {
        "assume": "assignee",
        "can_grant_assignee": "grant_assignee",
        "can_change_ownership": "grant_ownership",
        "read_assignments": "read_assignments",
    },
}

_RENAMED = {"update_storage": "modify_storage"}
_LEFT_OUT = {
    "server": {"read_grants"},
    "project": {
        *("get_metadata", "include_in_list", "modify_task_queue_config", "get_task_queue_config", "get_project_tasks"),
        *("control_project_tasks", "create_tag", "list_tags", "read_grants"),
    },
    "warehouse": {
        *("list_everything", "use", "modify_soft_deletion", "get_task_queue_config", "modify_task_queue_config"),
        *("manage_tags", "read_grants"),
    },
    "namespace": {
        *("list_tables", "list_views", "list_namespaces", "list_generic_tables", "list_everything"),
        *("include_in_list", "manage_tags", "read_grants"),
    },
    "table": {"include_in_list", "undrop", "manage_tags", "read_grants"},
    "view": {"include_in_list", "undrop", "manage_tags", "read_grants"},
    "role": {"read_metadata", "read_role_assignments", "manage_role_assignments", "update_source_system"},
}

# The actions of `access` and `check`: some of the catalog's, and all of the authorizer's.
DEPRECATED_ACTIONS = {
    kind: {
        **{_RENAMED.get(name, name): relation for name, relation in ACTIONS[kind].items() if name not in left_out},
        **({"modify_storage_credential": "modify"} if kind == "warehouse" else {}),
        **AUTHORIZER_ACTIONS[kind],
    }
    for kind, left_out in _LEFT_OUT.items()
}
