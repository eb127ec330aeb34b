"""The routers of the management API (`/management/v1`) and the Iceberg REST catalog (`/catalog/v1`)."""

from __future__ import annotations

from fastapi import APIRouter

from lakewright_sandbox.lakekeeper.catalog import commits, config, generic_tables, namespaces, tables, views
from lakewright_sandbox.lakekeeper.catalog.signing import signing
from lakewright_sandbox.lakekeeper.management import (
    deleted_tabulars,
    namespace_move,
    projects,
    server_info,
    statistics,
    tag_definitions,
    task_queues,
    tasks,
)
from lakewright_sandbox.lakekeeper.management.access import actions, checks, grants, permissions
from lakewright_sandbox.lakekeeper.management.identities import role_members, roles, search, users
from lakewright_sandbox.lakekeeper.management.warehouses import protection, updates, validation_reports, warehouses


def all_routers() -> list[APIRouter]:
    """Return the routers in the order of matching: fixed paths before paths with an id in the same position."""
    modules = (
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
        updates,
        validation_reports,
        statistics,
        tasks,
        deleted_tabulars,
        protection,
        namespace_move,
        search,
        config,
        signing,
        namespaces,
        tables,
        commits,
        views,
        generic_tables,
    )
    return [module.router for module in modules]
