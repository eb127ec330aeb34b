"""Storage profiles and credentials of all types: S3, Azure and Google.

A warehouse on Azure or Google is created, returned, updated and deleted as on a real server. Its data is in an
emulator, if the settings name its address; otherwise each access to its data results in 412.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationInfo

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import build_missing_field_error, knows, unknown_name, wrong_type
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.storage.access import AnyStorage, WarehouseStorage
from lakewright_sandbox.lakekeeper.storage.azure_profile import AdlsProfileBody, AzCredential, AzCredentialType
from lakewright_sandbox.lakekeeper.storage.azure_storage import AzureStorage
from lakewright_sandbox.lakekeeper.storage.google_profile import GcsCredential, GcsCredentialType, GcsProfileBody
from lakewright_sandbox.lakekeeper.storage.google_storage import GoogleStorage
from lakewright_sandbox.lakekeeper.storage.s3_profile import S3Credential, S3ProfileBody, apply_forced_settings
from lakewright_sandbox.typed.json_values import is_object

ALIASES = {"azdls": "adls"}
FAMILY_OF_PROFILE = {"s3": "s3", "adls": "az", "gcs": "gcs"}
FAMILY_OF_CREDENTIAL = {
    **dict.fromkeys(get_args(AzCredentialType), "az"),
    **dict.fromkeys(get_args(GcsCredentialType), "gcs"),
}
UNREACHABLE = "The sandbox has no {type} storage: it stores such warehouses but cannot access their data."
NO_IDENTITY_PROVIDER = "The sandbox has no identity provider for credentials of type `{type}`."


def _profile_type(document: Any, info: ValidationInfo) -> Any:
    names = ("adls", "azdls", *(("onelake",) if knows(info, "0.12") else ()), "s3")
    names += (*(("stackit",) if knows(info, "0.14") else ()), "gcs")
    return _check_type(document, names, "StorageProfile")


def _credential_type(document: Any) -> Any:
    return _check_type(document, ("s3", "az", "gcs"), "StorageCredential")


def _check_type(document: Any, names: tuple[str, ...], enum: str) -> Any:
    if isinstance(document, str):
        raise wrong_type(document, f"internally tagged enum {enum}")
    if not is_object(document):
        return document
    if "type" not in document:
        raise build_missing_field_error("type")
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


def load_credential(document: Mapping[str, Any] | None) -> Credential | None:
    """Return the credential of a stored document."""
    return _CREDENTIALS.validate_python(dict(document)) if document else None


def load_profile(document: Mapping[str, Any]) -> Profile:
    """Return the profile of a stored document."""
    return _PROFILES.validate_python(dict(document))


def apply_credential(profile: Profile, credential: Credential | None) -> Profile:
    """Return the profile with settings that its credential forces. S3 takes no credential of another type."""
    if not isinstance(profile, S3ProfileBody):
        return profile
    if credential is None or isinstance(credential, S3Credential):
        return apply_forced_settings(profile, credential)
    message = f"Expected storage of type s3, is: {'adls' if credential.type == 'az' else credential.type}"
    raise ApiError(400, "UnexpectedStorageProfileType", message)


def profiles_overlap(first: Profile, second: Profile) -> bool:
    """Return whether one profile's location contains the other's."""
    if isinstance(first, S3ProfileBody) and isinstance(second, S3ProfileBody):
        return first.overlaps(second)
    if isinstance(first, AdlsProfileBody) and isinstance(second, AdlsProfileBody):
        return first.overlaps(second)
    return isinstance(first, GcsProfileBody) and isinstance(second, GcsProfileBody) and first.overlaps(second)


def update_profile(old: Profile, new: Profile, *, region_moves: bool) -> Profile:
    """Return a profile after an update. Raises 400 `UpdateError` for a forbidden change."""
    if isinstance(old, S3ProfileBody) and isinstance(new, S3ProfileBody):
        return old.update_from(new, region_moves=region_moves)
    if isinstance(old, AdlsProfileBody) and isinstance(new, AdlsProfileBody):
        return old.update_from(new)
    if isinstance(old, GcsProfileBody) and isinstance(new, GcsProfileBody):
        return old.update_from(new)
    raise ApiError(400, "UpdateError", f"Incompatible profiles: {old.type} cannot be updated with {new.type}")


def credential_kind(credential_type: str) -> dict[str, str]:
    """Return a credential's type as responses contain it."""
    return {"type": FAMILY_OF_CREDENTIAL.get(credential_type, "s3"), "credential-type": credential_type}


def open_storage(profile: Profile, credential: Credential | None, settings: Settings) -> AnyStorage:
    """Return the storage of a profile. Raises an `ApiError` if the sandbox has no such storage."""
    if isinstance(profile, S3ProfileBody) and (credential is None or isinstance(credential, S3Credential)):
        return WarehouseStorage(profile, credential)
    if credential is None:
        raise ApiError(400, "MissingCredentialError", f"Missing credential for storage of type {profile.type}.")
    if credential.type != FAMILY_OF_PROFILE[profile.type]:
        message = f"Expected storage of type {profile.type}, is: {credential.type}"
        raise ApiError(400, "UnexpectedStorageProfileType", message)
    if isinstance(credential, AzCredential) and isinstance(profile, AdlsProfileBody):
        _check_identity(credential, "Azure", is_enabled=settings.azure_system_identity)
        if settings.adls_endpoint and credential.key is not None:
            return AzureStorage(profile, credential, settings.adls_endpoint)
    if isinstance(credential, GcsCredential) and isinstance(profile, GcsProfileBody):
        _check_identity(credential, "GCP", is_enabled=settings.gcp_system_identity)
        if settings.gcs_endpoint and credential.key is not None:
            return GoogleStorage(profile, credential, settings.gcs_endpoint)
    endpoint = settings.adls_endpoint if profile.type == "adls" else settings.gcs_endpoint
    message = NO_IDENTITY_PROVIDER if endpoint else UNREACHABLE
    raise ApiError(
        412, "InitializeClientError", message.format(type=credential.credential_type if endpoint else profile.type)
    )


def _check_identity(credential: AzCredential | GcsCredential, cloud: str, *, is_enabled: bool) -> None:
    """Raise 400 `Misconfiguration` for the server's own identity, if it is disabled."""
    if credential.credential_type in {"azure-system-identity", "gcp-system-identity"} and not is_enabled:
        reason = f"{cloud} System identity credentials are disabled in this Lakekeeper deployment."
        raise ApiError(400, "Misconfiguration", f"Credentials misconfigured: {reason}")
