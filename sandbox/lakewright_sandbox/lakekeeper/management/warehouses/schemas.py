"""Warehouses in requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, ValidationInfo, model_validator

from lakewright_sandbox.lakekeeper.database.models import WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.clock import optional_timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, knows
from lakewright_sandbox.lakekeeper.protocol.versions import PROFILE_FIELDS, WAREHOUSE_FIELDS, select_fields
from lakewright_sandbox.lakekeeper.server.server import validate_project_id
from lakewright_sandbox.lakekeeper.storage.profiles import AnyCredential, AnyProfile, credential_kind

ALL_FORMAT_VERSIONS = [1, 2, 3]


class HardDeleteBody(Body):
    """A delete profile without soft deletion."""

    type: Literal["hard"]

    def to_stored(self) -> dict[str, Any]:
        """Return the profile as the database stores it."""
        return {"type": "hard"}


class SoftDeleteBody(Body):
    """A delete profile with soft deletion."""

    type: Literal["soft"]
    expiration_seconds: int = Field(validation_alias=AliasChoices("expiration-seconds", "expiration_seconds"))

    def to_stored(self) -> dict[str, Any]:
        """Return the profile as the database stores it."""
        return {"type": "soft", "expiration-seconds": self.expiration_seconds}


DeleteProfile = Annotated[HardDeleteBody | SoftDeleteBody, Field(discriminator="type")]


class FormatVersionPolicy(Body):
    """Allowed format versions of tables, and the default version."""

    allowed_format_versions: list[int]
    default_format_version: int | None = None


class CreateWarehouse(Body):
    """Request to create a warehouse."""

    warehouse_name: str
    project_id: Annotated[str, AfterValidator(validate_project_id)] | None = None
    storage_profile: AnyProfile
    storage_credential: AnyCredential | None = None
    delete_profile: DeleteProfile = Field(default_factory=lambda: HardDeleteBody(type="hard"))
    allowed_format_versions: list[int] | None = None
    default_format_version: int | None = None
    managed_by: Literal["self-managed", "instance-admin"] = "self-managed"

    @model_validator(mode="after")
    def _drop_unknown_fields(self, info: ValidationInfo) -> CreateWarehouse:
        if not knows(info, "0.13"):
            self.allowed_format_versions = self.default_format_version = None
            self.managed_by = "self-managed"
        return self


def check_name(name: str) -> None:
    """Raise 400 for an invalid name of a warehouse."""
    if not name:
        raise ApiError(400, "EmptyWarehouseName", "Warehouse name cannot be empty")
    if len(name.encode()) > 128:
        raise ApiError(400, "WarehouseNameTooLong", "Warehouse name must be shorter than 128 chars")


def check_format_versions(allowed: list[int] | None, default: int | None) -> list[int]:
    """Return the allowed versions, sorted and unique. Raises 400 for invalid versions."""
    versions = sorted(set(ALL_FORMAT_VERSIONS if allowed is None else allowed))
    if not versions:
        message = "allowed_format_versions must contain at least one format version."
        raise ApiError(400, "EmptyAllowedFormatVersions", message)
    if unknown := [version for version in versions if version not in ALL_FORMAT_VERSIONS]:
        raise ApiError(400, "InvalidFormatVersion", f"Format version must be 1, 2 or 3, found {unknown[0]}.")
    if default is not None and default not in versions:
        message = f"default_format_version '{default}' is not in allowed_format_versions"
        raise ApiError(400, "DefaultFormatVersionNotAllowed", message)
    return versions


def warehouse_to_json(warehouse: WarehouseRow, version: str) -> dict[str, Any]:
    """Return a warehouse as responses contain it: never a key, only the credential's type."""
    body: dict[str, Any] = {
        "id": warehouse.id,
        "warehouse-id": warehouse.id,
        "name": warehouse.name,
        "project-id": warehouse.project_id,
        "storage-profile": select_fields(version, warehouse.storage_profile, PROFILE_FIELDS),
    }
    if warehouse.credential_type:
        body["storage-credential-type"] = credential_kind(warehouse.credential_type)
    body |= {
        "delete-profile": warehouse.delete_profile,
        "status": "active" if warehouse.active else "inactive",
        "protected": warehouse.protected,
        "managed-by": warehouse.managed_by,
        "allowed-format-versions": warehouse.allowed_format_versions,
    }
    if warehouse.default_format_version is not None:
        body["default-format-version"] = warehouse.default_format_version
    return select_fields(version, body, WAREHOUSE_FIELDS) | {"updated-at": optional_timestamp(warehouse.updated_at)}
