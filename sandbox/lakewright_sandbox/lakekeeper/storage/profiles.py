"""The families of storage that a warehouse may be on: S3, and Azure and Google, whose data are out of reach.

A warehouse on Azure or Google is created, shown, updated and deleted as the real server does it where storage is not
validated. Whatever would reach the data answers 412, since the sandbox has no such storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationInfo

from ..protocol.errors import ApiError
from ..protocol.requests import knows, missing_field, unknown_name, wrong_type
from .access import WarehouseStorage
from .azure_profile import AdlsProfileBody, AzCredential, AzCredentialType
from .google_profile import GcsCredential, GcsCredentialType, GcsProfileBody
from .s3_profile import S3Credential, S3ProfileBody, with_forced

ALIASES = {"azdls": "adls"}
FAMILY_OF_PROFILE = {"s3": "s3", "adls": "az", "gcs": "gcs"}
FAMILY_OF_CREDENTIAL = {
    **dict.fromkeys(get_args(AzCredentialType), "az"),
    **dict.fromkeys(get_args(GcsCredentialType), "gcs"),
}
OUT_OF_REACH = "The sandbox has no {type} storage: it keeps such warehouses, and reaches none of their data."


def _profile_type(document: Any, info: ValidationInfo) -> Any:
    names = ("adls", "azdls", *(("onelake",) if knows(info, "0.12") else ()), "s3")
    names += (*(("stackit",) if knows(info, "0.14") else ()), "gcs")
    return _known_type(document, names, "StorageProfile")


def _credential_type(document: Any) -> Any:
    return _known_type(document, ("s3", "az", "gcs"), "StorageCredential")


def _known_type(document: Any, names: tuple[str, ...], enum: str) -> Any:
    if isinstance(document, str):
        raise wrong_type(document, f"internally tagged enum {enum}")
    if not isinstance(document, Mapping):
        return document
    if "type" not in document:
        raise missing_field("type")
    name = document["type"]
    if name not in names:
        raise unknown_name("type", name, names)
    return {**document, "type": ALIASES.get(name, name)}


Profile = S3ProfileBody | AdlsProfileBody | GcsProfileBody
Credential = S3Credential | AzCredential | GcsCredential
AnyProfile = Annotated[
    Annotated[Profile, Field(discriminator="type")],
    BeforeValidator(_profile_type),
]
AnyCredential = Annotated[
    Annotated[Credential, Field(discriminator="type")],
    BeforeValidator(_credential_type),
]
_PROFILES: TypeAdapter[Profile] = TypeAdapter(AnyProfile)
_CREDENTIALS: TypeAdapter[Credential] = TypeAdapter(AnyCredential)


def kept_credential(document: Mapping[str, Any] | None) -> Credential | None:
    """Return the credential of a stored document."""
    return _CREDENTIALS.validate_python(dict(document)) if document else None


def kept_profile(document: Mapping[str, Any]) -> Profile:
    """Return the profile of a stored document."""
    return _PROFILES.validate_python(dict(document))


def for_credential(profile: Profile, credential: Credential | None) -> Profile:
    """Return the profile with what its credential forces on it. S3 takes no credential of another family."""
    if not isinstance(profile, S3ProfileBody):
        return profile
    if credential is None or isinstance(credential, S3Credential):
        return with_forced(profile, credential)
    message = f"Expected storage of type s3, is: {'adls' if credential.type == 'az' else credential.type}"
    raise ApiError(400, "UnexpectedStorageProfileType", message)


def overlap(one: Profile, other: Profile) -> bool:
    """Return whether one profile's location contains the other's."""
    if isinstance(one, S3ProfileBody) and isinstance(other, S3ProfileBody):
        return one.overlaps(other)
    if isinstance(one, AdlsProfileBody) and isinstance(other, AdlsProfileBody):
        return one.overlaps(other)
    return isinstance(one, GcsProfileBody) and isinstance(other, GcsProfileBody) and one.overlaps(other)


def updated(old: Profile, new: Profile, *, region_moves: bool) -> Profile:
    """Return a profile after an update. Raises 400 `UpdateError` for what may not change."""
    if isinstance(old, S3ProfileBody) and isinstance(new, S3ProfileBody):
        return old.updated_by(new, region_moves=region_moves)
    if isinstance(old, AdlsProfileBody) and isinstance(new, AdlsProfileBody):
        return old.updated_by(new)
    if isinstance(old, GcsProfileBody) and isinstance(new, GcsProfileBody):
        return old.updated_by(new)
    raise ApiError(400, "UpdateError", f"Incompatible profiles: {old.type} cannot be updated with {new.type}")


def credential_kind(credential_type: str) -> dict[str, str]:
    """Return a credential's kind as answers show it."""
    return {"type": FAMILY_OF_CREDENTIAL.get(credential_type, "s3"), "credential-type": credential_type}


def in_reach(profile: Profile, credential: Credential | None) -> WarehouseStorage:
    """Return the storage behind a profile. Raises an `ApiError` where it is none that the sandbox has."""
    if isinstance(profile, S3ProfileBody) and (credential is None or isinstance(credential, S3Credential)):
        return WarehouseStorage(profile, credential)
    if credential is None:
        raise ApiError(400, "MissingCredentialError", f"Missing credential for storage of type {profile.type}.")
    if credential.type != FAMILY_OF_PROFILE[profile.type]:
        message = f"Expected storage of type {profile.type}, is: {credential.type}"
        raise ApiError(400, "UnexpectedStorageProfileType", message)
    raise ApiError(412, "InitializeClientError", OUT_OF_REACH.format(type=profile.type))
