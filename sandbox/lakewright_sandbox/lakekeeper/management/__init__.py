"""The management API, `/management/v1`: one file per kind of object."""

from fastapi import APIRouter

from . import deleted_tabulars, namespace_move, projects, server_info, statistics, tag_definitions, task_queues, tasks
from .access import actions, checks, grants, permissions
from .identities import role_members, roles, search, users
from .warehouses import protection, validation_reports, warehouses
from .warehouses import updates as warehouse_updates

MODULES = (
    actions,
    checks,
    permissions,
    grants,
    users,
    role_members,
    roles,
    server_info,
    task_queues,
    tag_definitions,
    projects,
    warehouses,
    warehouse_updates,
    validation_reports,
    statistics,
    tasks,
    deleted_tabulars,
    protection,
    namespace_move,
    search,
)


def routers() -> list[APIRouter]:
    """In the order they match: fixed paths before those that take an id in the same place."""
    return [module.router for module in MODULES]
