"""Dry runs: every check of a create or update, reported instead of raised. The response is always 200."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy import select
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import WarehouseRow
from lakewright_sandbox.lakekeeper.management.warehouses.schemas import (
    CreateWarehouse,
    check_format_versions,
    check_name,
)
from lakewright_sandbox.lakekeeper.management.warehouses.updates import UpdateCredential, UpdateStorage
from lakewright_sandbox.lakekeeper.management.warehouses.warehouses import check_managed, check_overlap
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server
from lakewright_sandbox.lakekeeper.storage.profiles import (
    Credential,
    Profile,
    apply_credential,
    load_credential,
    load_profile,
    update_profile,
)
from lakewright_sandbox.lakekeeper.storage.validation import STORAGE_CHECKS, StorageCheck, attempt, report

ONLY_UPDATE = "Only applies when updating an existing warehouse."
ONLY_CREATE = "Only applies when creating a warehouse."
MALFORMED = "The storage profile is not well-formed."

router = APIRouter(prefix="/management/v1")


@router.post("/warehouse-creation-validation")
def validate_creation(
    server: Server, project: ProjectId, body: Annotated[CreateWarehouse, read_body(CreateWarehouse)]
) -> Response:
    """Report whether a warehouse could be created."""
    project = body.project_id or project
    form_check, profile = _check_form(body.storage_profile, body.storage_credential)

    def check_versions() -> None:
        check_format_versions(body.allowed_format_versions, body.default_format_version)

    def check_manager() -> None:
        if body.managed_by != "self-managed" and not server.settings.instance_admin:
            raise ApiError(403, "WarehouseManaged", "Creating a managed warehouse requires instance-admin privilege.")

    checks = [
        form_check,
        StorageCheck("profile-compatible", skipped=ONLY_UPDATE),
        StorageCheck("spec-mutable", skipped=ONLY_UPDATE),
        attempt("format-version-policy-consistent", check_versions),
        attempt("managed-by-allowed", check_manager),
        attempt("warehouse-name-valid", lambda: _check_name_free(server, project, body.warehouse_name)),
    ]
    if profile is None:
        checks += [StorageCheck(name, skipped=MALFORMED) for name in ("location-exclusive", *STORAGE_CHECKS)]
    else:
        checks.append(attempt("location-exclusive", lambda: check_overlap(server, project, profile)))
        checks += server.probe.checks(profile, body.storage_credential)
    return json_response(report(checks))


def _check_name_free(server: Lakekeeper, project: str, name: str) -> None:
    check_name(name)
    query = select(WarehouseRow.id).where(WarehouseRow.project_id == project, WarehouseRow.name_key == name.casefold())
    with server.database.read() as session:
        if session.scalars(query).first():
            message = f"A warehouse named `{name}` already exists in this project."
            raise ApiError(400, "WarehouseNameAlreadyTaken", message)


def _check_form(profile: Profile, credential: Credential | None) -> tuple[StorageCheck, Profile | None]:
    profiles: list[Profile] = []
    check = attempt("profile-well-formed", lambda: profiles.append(apply_credential(profile.normalize(), credential)))
    return check, profiles[0] if profiles else None


@router.post("/warehouse/{warehouse_id}/storage/validate-profile")
def validate_profile(
    server: Server, warehouse_id: UUID, body: Annotated[UpdateStorage, read_body(UpdateStorage)]
) -> Response:
    """Report whether a storage update would be accepted."""
    form_check, profile = _check_form(body.storage_profile, body.storage_credential)
    return _update_report(server, warehouse_id, form_check, profile, body.storage_credential, active=True)


@router.post("/warehouse/{warehouse_id}/storage/validate-credential")
def validate_credential(
    server: Server, warehouse_id: UUID, body: Annotated[UpdateCredential, read_body(UpdateCredential)]
) -> Response:
    """Report whether a new credential would be accepted."""
    (current, _), credential = _current(server, warehouse_id, active=True), body.new_storage_credential
    form_check, profile = _check_form(current, credential)
    return _update_report(server, warehouse_id, form_check, profile, credential, active=True)


@router.post("/warehouse/{warehouse_id}/storage/validate-access")
def validate_access(server: Server, warehouse_id: UUID) -> Response:
    """Report whether the warehouse's storage works."""
    current, credential = _current(server, warehouse_id, active=False)
    form_check, profile = _check_form(current, credential)
    return _update_report(server, warehouse_id, form_check, profile, credential, active=False)


def _current(server: Lakekeeper, warehouse_id: UUID, *, active: bool) -> tuple[Profile, Credential | None]:
    with server.database.read() as session:
        warehouse = find_warehouse(session, str(warehouse_id), active=active)
        secret = server.secrets.read_secret(session, warehouse.secret_id)
        return load_profile(warehouse.storage_profile), load_credential(secret)


def _update_report(
    server: Lakekeeper,
    warehouse_id: UUID,
    form_check: StorageCheck,
    profile: Profile | None,
    credential: Credential | None,
    *,
    active: bool,
) -> Response:
    with server.database.read() as session:
        warehouse = find_warehouse(session, str(warehouse_id), active=active)
        current = load_profile(warehouse.storage_profile)
    checks = [form_check]
    if profile is None:
        checks.append(StorageCheck("profile-compatible", skipped=MALFORMED))
    else:
        checks.append(attempt("profile-compatible", lambda: update_profile(current, profile, region_moves=True)))
    checks += [
        attempt("spec-mutable", lambda: check_managed(server, warehouse)),
        StorageCheck("format-version-policy-consistent", skipped=ONLY_CREATE),
        StorageCheck("managed-by-allowed", skipped=ONLY_CREATE),
        StorageCheck("warehouse-name-valid", skipped=ONLY_CREATE),
        StorageCheck("location-exclusive", skipped=ONLY_CREATE),
    ]
    if profile is None:
        checks += [StorageCheck(name, skipped=MALFORMED) for name in STORAGE_CHECKS]
    else:
        checks += server.probe.checks(profile, credential)
    return json_response(report(checks))
