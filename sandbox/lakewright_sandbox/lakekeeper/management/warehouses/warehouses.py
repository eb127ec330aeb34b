"""Warehouses: create, read, list, delete, activate, deactivate, protect."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target, forget_objects
from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import (
    ACTIVE_TASK,
    NamespaceRow,
    ProjectRow,
    TabularRow,
    TaskRow,
    WarehouseRow,
)
from lakewright_sandbox.lakekeeper.management.statistics import take_statistics
from lakewright_sandbox.lakekeeper.management.warehouses.schemas import (
    CreateWarehouse,
    check_format_versions,
    check_name,
    warehouse_to_json,
)
from lakewright_sandbox.lakekeeper.protocol.clock import new_id, timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, RequestRejectedError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Flag, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.protocol.versions import queue_name
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server
from lakewright_sandbox.lakekeeper.storage.profiles import Profile, apply_credential, load_profile, profiles_overlap
from lakewright_sandbox.lakekeeper.storage.validation import raise_failed

router = APIRouter(prefix="/management/v1")


class Protection(Body):
    """Request to protect an object against deletion, or to unprotect it."""

    protected: bool


@router.post("/warehouse")
def create_warehouse(
    server: Server, project: ProjectId, body: Annotated[CreateWarehouse, read_body(CreateWarehouse)]
) -> Response:
    """Create a warehouse after validating its storage."""
    project = body.project_id or project
    check_name(body.warehouse_name)
    versions = check_format_versions(body.allowed_format_versions, body.default_format_version)
    if body.managed_by != "self-managed" and not server.settings.instance_admin:
        raise ApiError(403, "WarehouseManaged", "Creating a managed warehouse requires instance-admin privilege.")
    profile = apply_credential(body.storage_profile.normalize(), body.storage_credential)
    if not server.settings.skip_storage_validation:
        checks = server.probe.checks(profile, body.storage_credential)
        raise_failed(checks, names_checks=server.settings.is_at_least("0.14"))
    check_overlap(server, project, profile)
    return json_response(_insert(server, project, body, profile, versions), 201)


def check_overlap(server: Lakekeeper, project: str, profile: Profile) -> None:
    """Raise 400 if another warehouse of the project, active or not, shares the location."""
    with server.database.read() as session:
        existing_warehouses = session.scalars(select(WarehouseRow).where(WarehouseRow.project_id == project)).all()
    for other in existing_warehouses:
        if profiles_overlap(profile, load_profile(other.storage_profile)):
            message = f"Storage profile overlaps with existing warehouse {other.name}"
            raise ApiError(400, "CreateWarehouseStorageProfileOverlap", message)


def _insert(
    server: Lakekeeper, project: str, body: CreateWarehouse, profile: Profile, versions: list[int]
) -> dict[str, object]:
    credential, now = body.storage_credential, server.clock.now()
    warehouse = WarehouseRow(
        id=new_id(),
        project_id=project,
        name=body.warehouse_name,
        name_key=body.warehouse_name.casefold(),
        storage_profile=profile.to_stored(),
        secret_id=None,
        credential_type=credential.credential_type if credential else None,
        delete_profile=body.delete_profile.to_stored(),
        active=True,
        protected=False,
        managed_by=body.managed_by,
        allowed_format_versions=versions,
        default_format_version=body.default_format_version,
        created_at=now,
        updated_at=None,
    )
    during = "Error creating warehouse in catalog"
    try:
        with server.database.write() as session:
            if session.get(ProjectRow, project) is None:
                raise ApiError(404, "ProjectNotFound", f"Project with id '{project}' not found", during)
            if credential:
                warehouse.secret_id = server.secrets.add_secret(session, credential.to_stored())
            session.add(warehouse)
            session.flush()
            take_statistics(session, warehouse.id, now)
            server.authorizer.add_owner(session, Target("warehouse", warehouse.id))
    except IntegrityError:
        message = f"A warehouse with the name '{warehouse.name}' already exists in project with id '{project}'"
        raise ApiError(409, "WarehouseAlreadyExists", message, during) from None
    return warehouse_to_json(warehouse, server.settings.version)


@router.get("/warehouse")
def list_warehouses(
    server: Server,
    project: ProjectId,
    warehouse_status: Annotated[list[Literal["active", "inactive"]] | None, Query(alias="warehouseStatus")] = None,
    project_id: Annotated[str | None, Query(alias="projectId")] = None,
) -> Response:
    """List active warehouses; from 0.14 on inactive warehouses too. Released servers cannot read that parameter."""
    if warehouse_status and not server.settings.is_at_least("0.14"):
        reason = f'warehouseStatus: invalid type: string "{warehouse_status[0]}", expected a sequence'
        raise RequestRejectedError(400, f"Failed to deserialize query string: {reason}")
    states = [status == "active" for status in warehouse_status or ["active"]]
    query = select(WarehouseRow).where(
        WarehouseRow.project_id == (project_id or project), WarehouseRow.active.in_(states)
    )
    with server.database.read() as session:
        warehouses = session.scalars(query.order_by(WarehouseRow.created_at, WarehouseRow.id)).all()
        warehouses = server.authorizer.filter_visible(session, warehouses, lambda row: Target("warehouse", row.id))
    for warehouse in warehouses:
        server.statuses.update(warehouse)
    return json_response(
        {"warehouses": [warehouse_to_json(warehouse, server.settings.version) for warehouse in warehouses]}
    )


@router.get("/warehouse/{warehouse_id}")
def get_warehouse(server: Server, warehouse_id: UUID) -> Response:
    """Return a warehouse."""
    with server.database.read() as session:
        warehouse = find_warehouse(session, str(warehouse_id))
        server.statuses.update(warehouse)
        return json_response(warehouse_to_json(warehouse, server.settings.version))


@router.delete("/warehouse/{warehouse_id}")
def delete_warehouse(server: Server, warehouse_id: UUID, *, force: Flag = False) -> Response:
    """Delete an empty warehouse without unfinished tasks; a protected warehouse with `force` only."""
    during = "Error deleting warehouse in catalog"
    with server.database.write() as session:
        warehouse = find_warehouse(session, str(warehouse_id))
        check_managed(server, warehouse)
        unfinished = select(TaskRow.queue).where(TaskRow.warehouse_id == warehouse.id, TaskRow.status.in_(ACTIVE_TASK))
        if queues := Counter(session.scalars(unfinished)):
            count = ", ".join(
                f"{number} Tasks in queue '{queue_name(server.settings.version, queue)}'"
                for queue, number in sorted(queues.items())
            )
            message = "Warehouse has unfinished tasks. Cannot delete warehouse until all tasks are finished."
            raise ApiError(409, "WarehouseHasUnfinishedTasks", message, f"Unfinished tasks: {count}", during)
        if warehouse.protected and not force:
            message = "Warehouse is protected and force flag not set. Cannot delete protected warehouse."
            raise ApiError(409, "WarehouseProtected", message, during)
        for content in (NamespaceRow, TabularRow):
            if session.scalars(select(content.id).where(content.warehouse_id == warehouse.id).limit(1)).first():
                message = "Warehouse is not empty. Cannot delete a non-empty warehouse."
                raise ApiError(409, "WarehouseNotEmpty", message, during)
        server.secrets.delete_secret(session, warehouse.secret_id)
        forget_objects(session, "warehouse", [warehouse.id])
        session.delete(warehouse)
    return empty()


@router.post("/warehouse/{warehouse_id}/activate")
def activate(server: Server, warehouse_id: UUID) -> Response:
    """Activate a warehouse."""
    return _set_active(server, str(warehouse_id), active=True)


@router.post("/warehouse/{warehouse_id}/deactivate")
def deactivate(server: Server, warehouse_id: UUID) -> Response:
    """Deactivate a warehouse."""
    return _set_active(server, str(warehouse_id), active=False)


def _set_active(server: Lakekeeper, warehouse_id: str, *, active: bool) -> Response:
    with server.database.write() as session:
        warehouse = find_warehouse(session, warehouse_id)
        server.statuses.update(warehouse)
        check_managed(server, warehouse)
        if warehouse.active != active:
            warehouse.active, warehouse.updated_at = active, server.clock.now()
    return empty(200)


@router.post("/warehouse/{warehouse_id}/protection")
def set_protection(server: Server, warehouse_id: UUID, body: Annotated[Protection, read_body(Protection)]) -> Response:
    """Set whether a warehouse is protected."""
    with server.database.write() as session:
        warehouse = find_warehouse(session, str(warehouse_id))
        check_managed(server, warehouse)
        if warehouse.protected != body.protected:
            warehouse.protected, warehouse.updated_at = body.protected, server.clock.now()
        updated = warehouse.updated_at
    return json_response({"protected": body.protected, "updated_at": timestamp(updated) if updated else None})


def check_managed(server: Lakekeeper, warehouse: WarehouseRow) -> None:
    """Raise 403 if instance admins alone may change the warehouse."""
    if warehouse.managed_by == "instance-admin" and not server.settings.instance_admin:
        message = f"Warehouse '{warehouse.name}' is managed and can be changed by instance admins only."
        raise ApiError(403, "WarehouseManaged", message)
