"""Update a warehouse: name, storage, credential, delete profile, format versions, manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy import inspect, select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import WarehouseRow
from lakewright_sandbox.lakekeeper.management.warehouses.schemas import (
    DeleteProfile,
    FormatVersionPolicy,
    check_format_versions,
    check_name,
    warehouse_to_json,
)
from lakewright_sandbox.lakekeeper.management.warehouses.warehouses import check_managed
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server
from lakewright_sandbox.lakekeeper.storage.profiles import (
    AnyCredential,
    AnyProfile,
    Credential,
    Profile,
    apply_credential,
    load_profile,
    update_profile,
)
from lakewright_sandbox.lakekeeper.storage.validation import raise_failed

router = APIRouter(prefix="/management/v1/warehouse/{warehouse_id}")


class RenameWarehouseBody(Body):
    """Request to rename a warehouse."""

    new_name: str


class UpdateStorage(Body):
    """Request to replace storage profile and credential."""

    storage_profile: AnyProfile
    storage_credential: AnyCredential | None = None


class UpdateCredential(Body):
    """Request to replace the credential."""

    new_storage_credential: AnyCredential | None = None


class UpdateDeleteProfile(Body):
    """Request to replace the delete profile."""

    delete_profile: DeleteProfile


class UpdateManagedBy(Body):
    """Request to change who manages the warehouse."""

    managed_by: Literal["self-managed", "instance-admin"]


Change = Callable[[Session, WarehouseRow], None]


def _change(
    server: Lakekeeper, warehouse_id: UUID, change: Change, *, active: bool = True, during: str | None = None
) -> Response:
    """Apply `change` in one transaction; `updated-at` moves only if something changed.

    The trigger of Lakekeeper's database compares names as their unique index does, which ignores case.
    """
    with server.database.write() as session:
        warehouse = find_warehouse(session, str(warehouse_id), active=active, during=during)
        server.statuses.update(warehouse)
        check_managed(server, warehouse)
        change(session, warehouse)
        changed = {column.key for column in inspect(warehouse).attrs if column.history.has_changes()}
        if changed - {"name"}:
            warehouse.updated_at = server.clock.now()
        return json_response(warehouse_to_json(warehouse, server.settings.version))


@router.post("/rename")
def rename(
    server: Server, warehouse_id: UUID, body: Annotated[RenameWarehouseBody, read_body(RenameWarehouseBody)]
) -> Response:
    """Rename a warehouse."""
    check_name(body.new_name)

    def change(session: Session, warehouse: WarehouseRow) -> None:
        key = body.new_name.casefold()
        taken = select(WarehouseRow.id).where(
            WarehouseRow.project_id == warehouse.project_id,
            WarehouseRow.name_key == key,
            WarehouseRow.id != warehouse.id,
        )
        if session.scalars(taken).first():
            message = (
                "Catalog backend error (Unexpected): error returned from database: duplicate key value violates "
                'unique constraint "unique_warehouse_name_in_project"'
            )
            raise ApiError(503, "CatalogBackendError", message)
        if warehouse.name != body.new_name:
            warehouse.name, warehouse.name_key = body.new_name, key

    return _change(server, warehouse_id, change, during="Error renaming warehouse in catalog")


@router.post("/storage")
def update_storage(
    server: Server, warehouse_id: UUID, body: Annotated[UpdateStorage, read_body(UpdateStorage)]
) -> Response:
    """Replace profile and credential; a credential that is left out is removed."""
    new = apply_credential(body.storage_profile.normalize(), body.storage_credential)
    _validate(server, warehouse_id, new, body.storage_credential)

    def change(session: Session, warehouse: WarehouseRow) -> None:
        old = load_profile(warehouse.storage_profile)
        profile = update_profile(old, new, region_moves=server.settings.is_at_least("0.12")).to_stored()
        if profile != warehouse.storage_profile:
            warehouse.storage_profile = profile
        _replace_secret(server, session, warehouse, body.storage_credential)

    return _change(server, warehouse_id, change)


@router.post("/storage-credential")
def update_credential(
    server: Server, warehouse_id: UUID, body: Annotated[UpdateCredential, read_body(UpdateCredential)]
) -> Response:
    """Replace the credential alone. Settings that a credential forces come with the profile only."""
    new = body.new_storage_credential
    _validate(server, warehouse_id, None, new)

    def change(session: Session, warehouse: WarehouseRow) -> None:
        _replace_secret(server, session, warehouse, new)

    return _change(server, warehouse_id, change)


def _validate(server: Lakekeeper, warehouse_id: UUID, profile: Profile | None, credential: Credential | None) -> None:
    """Validate a new or the current profile with a credential."""
    with server.database.read() as session:
        warehouse = find_warehouse(session, str(warehouse_id), active=True)
        check_managed(server, warehouse)
        profile = profile or load_profile(warehouse.storage_profile)
    if not server.settings.skip_storage_validation:
        raise_failed(server.probe.checks(profile, credential), names_checks=server.settings.is_at_least("0.14"))


def _replace_secret(
    server: Lakekeeper, session: Session, warehouse: WarehouseRow, credential: Credential | None
) -> None:
    """Store a new secret even for an equal credential, so that nothing cached for the old credential is reused."""
    server.secrets.delete_secret(session, warehouse.secret_id)
    warehouse.secret_id = warehouse.credential_type = None
    if credential is not None:
        warehouse.secret_id = server.secrets.add_secret(session, credential.to_stored())
        warehouse.credential_type = credential.credential_type


@router.post("/delete-profile")
def update_delete_profile(
    server: Server, warehouse_id: UUID, body: Annotated[UpdateDeleteProfile, read_body(UpdateDeleteProfile)]
) -> Response:
    """Replace the delete profile."""

    def change(_session: Session, warehouse: WarehouseRow) -> None:
        if warehouse.delete_profile != body.delete_profile.to_stored():
            warehouse.delete_profile = body.delete_profile.to_stored()

    return _change(server, warehouse_id, change)


@router.post("/format-version-policy")
def update_format_versions(
    server: Server, warehouse_id: UUID, body: Annotated[FormatVersionPolicy, read_body(FormatVersionPolicy)]
) -> Response:
    """Replace the policy for format versions."""
    versions = check_format_versions(body.allowed_format_versions, body.default_format_version)

    def change(_session: Session, warehouse: WarehouseRow) -> None:
        if (versions, body.default_format_version) != (
            warehouse.allowed_format_versions,
            warehouse.default_format_version,
        ):
            warehouse.allowed_format_versions = versions
            warehouse.default_format_version = body.default_format_version

    return _change(server, warehouse_id, change, active=False)


@router.post("/managed-by")
def update_manager(
    server: Server, warehouse_id: UUID, body: Annotated[UpdateManagedBy, read_body(UpdateManagedBy)]
) -> Response:
    """Set who manages the warehouse."""
    if not server.settings.instance_admin:
        message = "Action `set_warehouse_managed_by` requires instance-admin privilege."
        raise ApiError(403, "InstanceAdminRequired", message)

    def change(_session: Session, warehouse: WarehouseRow) -> None:
        if warehouse.managed_by != body.managed_by:
            warehouse.managed_by = body.managed_by

    return _change(server, warehouse_id, change, active=False)
