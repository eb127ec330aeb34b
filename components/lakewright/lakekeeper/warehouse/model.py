"""What is declared of a warehouse, as it is sent and as it is found. Pure functions."""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, model_validator

from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.inputs import (
    CreateOnly,
    Deletable,
    Replace,
    Rotate,
    ServerKeeps,
    StateOnly,
    Update,
    has_unknown,
    is_unknown,
)
from lakewright.lakekeeper.storage.credentials import (
    AnyCredential,
    Credential,
    UndeclaredCredential,
    credential_request,
)
from lakewright.lakekeeper.storage.profiles import (
    DeleteProfile,
    HardDelete,
    StorageProfile,
    delete_profile_observed,
    delete_profile_request,
    mismatch,
    profile_observed,
    profile_request,
)
from lakewright.names.types import FormatVersion, ProjectId, WarehouseName


def _sorted(versions: list[int]) -> list[int]:
    if not versions:
        raise ValueError("at least one format version must be allowed")
    return sorted(set(versions))


class WarehouseArgs(Deletable):
    """What is declared of a warehouse."""

    project_id: Annotated[ProjectId, Replace()]
    """Project that the warehouse belongs to."""
    name: Annotated[WarehouseName, Update(via="rename")]
    """Name of the warehouse, unique in its project whatever its case."""
    storage: Annotated[StorageProfile, Update(via="storage")]
    """Where the data is: the fields of `S3Profile`, `AdlsProfile` or `GcsProfile`, told apart by `type`."""
    credential: Annotated[Credential | None, Rotate(via="storage-credential")] = None
    """How the server reaches the storage; secrets by reference. None: the server has to do without."""
    credential_fingerprint: Annotated[str | None, Rotate(via="storage-credential"), ServerKeeps()] = None
    delete_profile: Annotated[DeleteProfile, Update(via="delete-profile")] = HardDelete()
    """Whether dropped tables can be brought back, and for how long."""
    protected: Annotated[bool, Update(via="protection")] = False
    """Whether the server refuses to delete the warehouse."""
    active: Annotated[bool, Update(via="status")] = True
    """Whether the warehouse can be used."""
    allowed_format_versions: Annotated[
        list[FormatVersion] | None, AfterValidator(_sorted), Update(via="format-version-policy"), ServerKeeps()
    ] = None
    """Iceberg format versions that tables may have. Left out: as the server has it. From 0.13 on."""
    default_format_version: Annotated[FormatVersion | None, Update(via="format-version-policy"), ServerKeeps()] = None
    """Format version of tables that say none; one of the allowed ones."""
    managed_access: Annotated[bool | None, Update(via="managed-access"), ServerKeeps()] = None
    """Whether only those with `manage_grants` give grants in it, and owners of objects do not. OpenFGA only."""
    own_bucket: Annotated[OwnBucket | None, StateOnly()] = None
    """The bucket, if the stack made it: `deletion: purge` then also deletes all other objects and old versions under
    the warehouse's key prefix."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over a warehouse of this name that exists at the declared place."""

    @model_validator(mode="after")
    def _default_is_allowed(self) -> Self:
        allowed, default = self.allowed_format_versions, self.default_format_version
        if default is None or has_unknown([allowed, default]):
            return self
        if allowed is None:
            raise ValueError("`default_format_version` goes with `allowed_format_versions`")
        if default not in allowed:
            raise ValueError(f"`default_format_version` {default} is not among `allowed_format_versions`")
        return self

    @model_validator(mode="after")
    def _credential_is_for_the_storage(self) -> Self:
        if not is_unknown(self.storage) and (reason := mismatch(self.storage, self.credential)):
            raise ValueError(reason)
        return self


def create_request(new: WarehouseArgs, secret: Callable[[str], str]) -> dict[str, Any]:
    """A declaration as it is sent to create."""
    body: dict[str, Any] = {
        "warehouse-name": new.name,
        "project-id": new.project_id,
        "storage-profile": profile_request(new.storage),
        "delete-profile": delete_profile_request(new.delete_profile),
    }
    if new.credential:
        body["storage-credential"] = credential_request(new.credential, secret)
    return body | (format_policy(new) if new.allowed_format_versions else {})


def storage_request(new: WarehouseArgs, secret: Callable[[str], str]) -> dict[str, Any]:
    """A declaration's storage as it is sent to change: with its credential, since one left out is deleted."""
    body: dict[str, Any] = {"storage-profile": profile_request(new.storage)}
    return body | ({"storage-credential": credential_request(new.credential, secret)} if new.credential else {})


def format_policy(new: WarehouseArgs) -> dict[str, Any]:
    """The format versions of a declaration as they are sent."""
    policy: dict[str, Any] = {"allowed-format-versions": new.allowed_format_versions}
    return policy | ({"default-format-version": new.default_format_version} if new.default_format_version else {})


def observed(
    found: warehouses.WarehouseResponse,
    declared: WarehouseArgs,
    *,
    credential_kind_told: bool,
    managed_access: bool | None,
) -> WarehouseArgs:
    """What the server answers, in the words of a declaration.

    Of a credential it tells the kind at most: another kind, or none, shows as a credential that is missing.
    """
    credential = declared.credential
    if credential_kind_told:
        told: dict[str, Any] = found.get("storage-credential-type") or {}
        credential = _credential_observed(told.get("credential-type"), credential)
    intact = credential == declared.credential
    versions, default = found.get("allowed-format-versions"), found.get("default-format-version")
    return declared.model_copy(
        update={
            "project_id": found["project-id"],
            "name": found["name"],
            "storage": profile_observed(found["storage-profile"], declared.storage),
            "credential": credential,
            "credential_fingerprint": declared.credential_fingerprint if intact else None,
            "delete_profile": delete_profile_observed(found["delete-profile"]),
            "protected": bool(found.get("protected")),
            "active": found["status"] == "active",
            "allowed_format_versions": versions if declared.allowed_format_versions else None,
            "default_format_version": default if declared.default_format_version else None,
            "managed_access": managed_access,
        }
    )


def _credential_observed(kind: str | None, declared: AnyCredential | None) -> AnyCredential | None:
    if kind is None or (declared is not None and kind != declared.type):
        return None
    return declared or UndeclaredCredential(type="undeclared", kind=kind)


def same_place(there: WarehouseArgs, declared: WarehouseArgs) -> bool:
    """Whether project and place are the declared ones, as an interrupted creation leaves them."""
    return there.project_id == declared.project_id and there.storage.place == declared.storage.place
