"""What the caller may do: everything, under the allow-all authorizer."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from ..errors import project_missing
from ..models import Project
from ..responses import json_response
from ..server import ProjectId, Server, find_warehouse

PROJECT_ACTIONS = [
    "create_warehouse",
    "delete",
    "rename",
    "get_metadata",
    "list_warehouses",
    "include_in_list",
    "create_role",
    "list_roles",
    "search_roles",
    "get_endpoint_statistics",
    "modify_task_queue_config",
    "get_task_queue_config",
    "get_project_tasks",
    "control_project_tasks",
    "create_tag",
    "list_tags",
    "read_grants",
]
WAREHOUSE_ACTIONS = [
    "create_namespace",
    "delete",
    "update_storage",
    "get_metadata",
    "get_config",
    "list_namespaces",
    "list_everything",
    "use",
    "include_in_list",
    "deactivate",
    "activate",
    "rename",
    "list_deleted_tabulars",
    "modify_soft_deletion",
    "get_task_queue_config",
    "modify_task_queue_config",
    "get_all_tasks",
    "control_all_tasks",
    "set_protection",
    "set_format_version_policy",
    "get_endpoint_statistics",
    "manage_tags",
    "accept_moved_namespace",
    "read_grants",
]

router = APIRouter(prefix="/management/v1")


@router.get("/project/actions")
def project_actions(server: Server, project: ProjectId) -> Response:
    with server.database.read() as session:
        if session.get(Project, project) is None:
            raise project_missing(project)
    return _allowed(PROJECT_ACTIONS)


@router.get("/warehouse/{warehouse_id}/actions")
def warehouse_actions(server: Server, warehouse_id: UUID) -> Response:
    with server.database.read() as session:
        find_warehouse(session, str(warehouse_id))
    return _allowed(WAREHOUSE_ACTIONS)


def _allowed(names: list[str]) -> Response:
    return json_response({"allowed-actions": [{"action": name} for name in names]})
