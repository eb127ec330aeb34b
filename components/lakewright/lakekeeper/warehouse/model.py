"""Inputs of a warehouse, and pure functions that convert them to requests and from responses."""

from collections.abc import Callable, Iterator, Set
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, model_validator

from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.inputs import (
    CreateOnly,
    Declared,
    Deletable,
    NeedsActive,
    NeedsOpenFga,
    Replace,
    Rotate,
    ServerKeeps,
    Since,
    StateOnly,
    Update,
    Wire,
    find_mark,
    has_unknown,
    is_unknown,
)
from lakewright.lakekeeper.server.lookup_base import LookupResult
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
from lakewright.ownership.mark import OwnershipMark


def _sort_versions(versions: list[int]) -> list[int]:
    if not versions:
        raise ValueError("at least one format version must be allowed")
    return sorted(set(versions))


class WarehouseArchive(Declared):
    """How a warehouse is archived when the resource is deleted. `deletion` must be `retain`."""

    purge_after_days: int | None = None
    """Days from the archiving to the purge by `lakewright expire`; None if it is never purged."""
    roles: list[str] = []
    """Names of the IAM roles of the stack that are limited to reading."""


class WarehouseArgs(Deletable):
    """Inputs of a warehouse."""

    project_id: Annotated[ProjectId, Replace(), Wire("project-id", in_create=True)]
    """Project that the warehouse belongs to."""
    name: Annotated[WarehouseName, Update(via="rename"), NeedsActive()]
    """Name of the warehouse, unique in its project, ignoring case."""
    storage: Annotated[StorageProfile, Update(via="storage"), NeedsActive()]
    """Location of the data: the fields of `S3Profile`, `AdlsProfile` or `GcsProfile`, selected by `type`."""
    credential: Annotated[Credential | None, Rotate(via="storage-credential"), NeedsActive()] = None
    """Credential that the server uses for the storage; secrets by reference. None: no credential."""
    credential_fingerprint: Annotated[str | None, Rotate(via="storage-credential"), NeedsActive(), ServerKeeps()] = None
    delete_profile: Annotated[
        DeleteProfile,
        Update(via="delete-profile"),
        NeedsActive(),
        Wire("delete-profile", in_create=True, to_wire=delete_profile_request, from_wire=delete_profile_observed),
    ] = HardDelete()
    """Whether dropped tables can be restored, and for how long."""
    protected: Annotated[bool, Update(via="protection"), Wire("protected", optional=True, from_wire=bool)] = False
    """Whether the server refuses to delete the warehouse."""
    active: Annotated[bool, Update(via="status")] = True
    """Whether the warehouse can be used."""
    allowed_format_versions: Annotated[
        list[FormatVersion] | None,
        AfterValidator(_sort_versions),
        Update(via="format-version-policy"),
        ServerKeeps(),
        Since((0, 13)),
        Wire("allowed-format-versions", in_create=True, optional=True),
    ] = None
    """Iceberg format versions that tables may have. If omitted, the server keeps its value."""
    default_format_version: Annotated[
        FormatVersion | None,
        Update(via="format-version-policy"),
        ServerKeeps(),
        Since((0, 13)),
        Wire("default-format-version", in_create=True, optional=True),
    ] = None
    """Format version of tables that do not set one; must be an allowed version."""
    managed_access: Annotated[bool | None, Update(via="managed-access"), ServerKeeps(), NeedsOpenFga()] = None
    """Whether only principals with `manage_grants` can grant privileges in it. Owners of objects then cannot."""
    own_bucket: Annotated[OwnBucket | None, StateOnly()] = None
    """The bucket, if the stack created it: `deletion: purge` then also deletes all other objects and old versions under
    the warehouse's key prefix."""
    is_adopted: Annotated[bool | None, StateOnly()] = None
    """Whether the stack adopted it once. Foreign objects may be under its key prefix: objects that none of its tables
    explains stop a purge."""
    record: Annotated[str | None, Update(via="mark"), ServerKeeps()] = None
    """Id of the tenant's record, for the warehouse's mark. Only a warehouse of a shared project has a mark of its
    own."""
    stack: Annotated[str | None, Update(via="mark"), ServerKeeps()] = None
    """The stack that owns the warehouse, for its mark. Computed."""
    archive: Annotated[WarehouseArchive | None, StateOnly()] = None
    """Archive the warehouse when the resource is deleted: make it read-only, and record when it may be purged."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing warehouse of this name at the declared location."""

    @property
    def mark(self) -> OwnershipMark | None:
        """The warehouse's own mark; None if the mark of its project covers it."""
        return OwnershipMark(self.stack, self.record) if self.record else None

    @model_validator(mode="after")
    def _default_is_allowed(self) -> Self:
        allowed, default = self.allowed_format_versions, self.default_format_version
        if default is None or has_unknown([allowed, default]):
            return self
        if allowed is None:
            raise ValueError("`default_format_version` requires `allowed_format_versions`")
        if default not in allowed:
            raise ValueError(f"`default_format_version` {default} is not among `allowed_format_versions`")
        return self

    @model_validator(mode="after")
    def _credential_is_for_the_storage(self) -> Self:
        if not is_unknown(self.storage) and (reason := mismatch(self.storage, self.credential)):
            raise ValueError(reason)
        return self


class WarehouseInfo(LookupResult):
    """A warehouse. `storage` has the properties of a declared `storage`, with the server's values."""

    warehouse_id: str
    name: str
    project_id: str
    active: bool
    protected: bool
    storage: dict[str, Any]
    credential_type: str | None
    """Kind of the storage credential. None if there is no credential, or the server does not report its kind."""
    soft_delete_seconds: int | None
    """Seconds for which a dropped table can be restored; None without soft deletion."""
    allowed_format_versions: tuple[int, ...]
    """Empty if the server is too old to report them."""
    default_format_version: int | None
    updated_at: datetime | None


WIRED = {name: wire for name, field in WarehouseArgs.model_fields.items() if (wire := find_mark(field, Wire))}
"""Properties that are converted by their `Wire` mark alone, by name."""

NEEDS_ACTIVE = frozenset(
    mark.via
    for field in WarehouseArgs.model_fields.values()
    if find_mark(field, NeedsActive)
    for mark in (find_mark(field, Update), find_mark(field, Rotate))
    if mark
)
"""Calls that the server refuses while the warehouse is inactive."""


def list_created_values(new: WarehouseArgs) -> list[Any]:
    """Return the values that the create request contains besides name and storage."""
    return [new.credential, *(getattr(new, name) for name, wire in WIRED.items() if wire.in_create)]


def create_request(new: WarehouseArgs, secret: Callable[[str], str]) -> dict[str, Any]:
    """Return the body of the request to create a warehouse."""
    body: dict[str, Any] = {"warehouse-name": new.name, "storage-profile": profile_request(new.storage)}
    body |= _to_wire(new, [name for name, wire in WIRED.items() if wire.in_create])
    if new.credential:
        body["storage-credential"] = credential_request(new.credential, secret)
    return body


def storage_request(new: WarehouseArgs, secret: Callable[[str], str]) -> dict[str, Any]:
    """Return the body of the request to change the storage. The server deletes a credential that is left out."""
    body: dict[str, Any] = {"storage-profile": profile_request(new.storage)}
    return body | ({"storage-credential": credential_request(new.credential, secret)} if new.credential else {})


def add_live_default_version(new: WarehouseArgs, response: warehouses.WarehouseResponse) -> WarehouseArgs:
    """Return a declaration with the server's default format version if it declares none and allows that version.

    A change of the allowed versions replaces the whole policy. The server deletes a default that is left out.
    """
    live_default = response.get(WIRED["default_format_version"].key)
    if new.default_format_version is not None or live_default not in (new.allowed_format_versions or ()):
        return new
    return new.model_copy(update={"default_format_version": live_default})


def plain_changes(new: WarehouseArgs) -> dict[str, dict[str, Any]]:
    """Return the request bodies of the calls that change the `WIRED` properties, by name of the call."""
    by_call: dict[str, list[str]] = {}
    for name in WIRED:
        if update := find_mark(WarehouseArgs.model_fields[name], Update):
            by_call.setdefault(update.via, []).append(name)
    return {call: _to_wire(new, names) for call, names in by_call.items()}


def _to_wire(new: WarehouseArgs, names: list[str]) -> dict[str, Any]:
    values = {name: getattr(new, name) for name in names}
    return {WIRED[name].key: WIRED[name].to_wire(value) for name, value in values.items() if value is not None}


def _from_wire(response: warehouses.WarehouseResponse, args: WarehouseArgs) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, wire in WIRED.items():
        value = wire.from_wire(response.get(wire.key) if wire.optional else response[wire.key])
        is_kept = getattr(args, name) is None and find_mark(WarehouseArgs.model_fields[name], ServerKeeps)
        values[name] = None if is_kept else value
    return values


def read_properties(response: warehouses.WarehouseResponse) -> dict[str, Any]:
    """Return the properties that a response shows, in plain values by name, without any declaration."""
    values = {
        name: wire.from_wire(response.get(wire.key) if wire.optional else response[wire.key])
        for name, wire in WIRED.items()
    }
    return {name: value.model_dump() if isinstance(value, Declared) else value for name, value in values.items()} | {
        "name": response["name"],
        "active": response["status"] == "active",
        "storage": {
            key.replace("-", "_"): value for key, value in response["storage-profile"].items() if value is not None
        },
    }


def read_info(response: warehouses.WarehouseResponse) -> WarehouseInfo:
    """Return a response as a lookup result: the properties of the resource, and computed values."""
    properties = read_properties(response)
    credential: dict[str, Any] = response.get("storage-credential-type") or {}
    computed = {
        "warehouse_id": warehouses.read_id(response),
        "credential_type": credential.get("credential-type"),
        "soft_delete_seconds": properties["delete_profile"].get("expiration_seconds"),
        "allowed_format_versions": properties["allowed_format_versions"] or (),
        "updated_at": response.get("updated-at"),
    }
    return WarehouseInfo.model_validate(properties | computed)


def list_changed_values(response: warehouses.WarehouseResponse, names: Set[str]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each other property of a response that is not its default, besides identifiers.

    Args:
        response: The server's response.
        names: Names of properties to leave out.
    """
    values = read_properties(response)
    for name in WIRED:
        field = WarehouseArgs.model_fields[name]
        default = field.default.model_dump() if isinstance(field.default, Declared) else field.default
        if name not in names and find_mark(field, Update) and values[name] != default:
            yield name, values[name]


def observe(
    response: warehouses.WarehouseResponse,
    args: WarehouseArgs,
    *,
    reports_credential_kind: bool,
    managed_access: bool | None,
) -> WarehouseArgs:
    """Return a response as inputs, comparable with the declared inputs.

    The server reports at most the kind of a credential. If the kind differs or is missing, the credential is None.

    Args:
        response: The server's response.
        args: The declared inputs.
        reports_credential_kind: Whether the server reports the kind of the credential.
        managed_access: Managed access of the warehouse, which the response does not contain.
    """
    credential = args.credential
    if reports_credential_kind:
        credential_response: dict[str, Any] = response.get("storage-credential-type") or {}
        credential = _credential_observed(credential_response.get("credential-type"), credential)
    intact = credential == args.credential
    return args.model_copy(
        update={
            **_from_wire(response, args),
            "name": response["name"],
            "storage": profile_observed(response["storage-profile"], args.storage),
            "credential": credential,
            "credential_fingerprint": args.credential_fingerprint if intact else None,
            "active": response["status"] == "active",
            "managed_access": managed_access,
        }
    )


def _credential_observed(kind: str | None, args: AnyCredential | None) -> AnyCredential | None:
    if kind is None or (args is not None and kind != args.type):
        return None
    return args or UndeclaredCredential(type="undeclared", kind=kind)


def same_place(live_args: WarehouseArgs, args: WarehouseArgs) -> bool:
    """Return whether project and location are as declared, as after an interrupted creation."""
    return live_args.project_id == args.project_id and live_args.storage.place == args.storage.place
