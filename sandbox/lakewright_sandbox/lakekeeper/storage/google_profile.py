"""Storage profiles and credentials of Google Cloud Storage: shape, normal form, permitted updates.

Source: `gcs/mod.rs` and `gcs_location.rs` of Lakekeeper 0.13.3; the recordings in `12-other-storage` have its
responses.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Literal, get_args

from pydantic import BaseModel, field_validator, model_validator

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import wrong_type
from lakewright_sandbox.lakekeeper.storage.base import (
    StorageCredentialBody,
    StorageLayoutBody,
    StorageProfileBody,
    check_variant,
    prefixes_overlap,
    refuse_changes,
)

GcsCredentialType = Literal["service-account-key", "gcp-system-identity"]


class GcsProfileBody(StorageProfileBody):
    """A Google profile. The order of fields is that of the server's responses."""

    type: Literal["gcs"]
    bucket: str
    key_prefix: str | None = None
    sts_enabled: bool = True
    storage_layout: StorageLayoutBody | None = None

    def normalize(self) -> GcsProfileBody:
        """Return the profile as the server stores it. Raises the server's 400 for an invalid profile."""
        if self.bucket.endswith("."):
            message = f"Invalid location `gs://{self.bucket}/`: the host has a trailing `.`."
            raise ApiError(400, "InvalidLocation", message)
        _check_bucket(self.bucket)
        prefix = (self.key_prefix or "").strip("/") or None
        if prefix and len(prefix.encode()) > 896:
            message = "Storage Profile `key_prefix` must be less than 896 characters."
            raise ApiError(400, "Invalidkey_prefix", message)
        return self.model_copy(update={"key_prefix": prefix})

    @property
    def allow_alternative_protocols(self) -> bool:
        """Return False: Google's locations have no other scheme than `gs`."""
        return False

    @property
    def base_location(self) -> str:
        """Return the location of the warehouse's data."""
        return f"gs://{self.bucket}/{self.key_prefix}" if self.key_prefix else f"gs://{self.bucket}"

    def overlaps(self, other: GcsProfileBody) -> bool:
        """Return whether either location contains the other."""
        return self.bucket == other.bucket and prefixes_overlap(self.key_prefix, other.key_prefix)

    def update_from(self, new: GcsProfileBody) -> GcsProfileBody:
        """Return the profile after an update. Raises 400 `UpdateError` for fixed fields."""
        refuse_changes(self, new, "bucket", "key_prefix")
        return new.model_copy(update={"storage_layout": new.storage_layout or self.storage_layout})


class GcsServiceKey(BaseModel):
    """The key of a service account in Google's format; the server needs all fields."""

    type: str
    project_id: str
    private_key_id: str
    private_key: str
    client_email: str
    client_id: str
    auth_uri: str
    token_uri: str
    auth_provider_x509_cert_url: str
    client_x509_cert_url: str
    universe_domain: str


class GcsCredential(StorageCredentialBody):
    """The key of a service account, or the server's own identity."""

    type: Literal["gcs"]
    credential_type: GcsCredentialType
    key: GcsServiceKey | None = None

    @field_validator("credential_type", mode="before")
    @classmethod
    def _check_variant(cls, name: Any) -> Any:
        return check_variant(name, get_args(GcsCredentialType))

    @field_validator("key", mode="before")
    @classmethod
    def _is_object(cls, key: Any) -> Any:
        if isinstance(key, str):
            raise wrong_type(key, "struct GcsServiceKey")
        return key

    @model_validator(mode="after")
    def _complete(self) -> GcsCredential:
        if self.credential_type == "service-account-key" and self.key is None:
            raise ValueError("missing field `key`")
        return self


def _check_bucket(bucket: str) -> None:
    reason = None
    if not 3 <= len(bucket) <= 63:
        reason = "must be between 3 and 63 characters long."
    elif not re.fullmatch(r"[a-z0-9.-]+", bucket):
        reason = "can consist only of lowercase letters, numbers, dots (.), and hyphens (-)."
    elif not (bucket[0].isalnum() and bucket[-1].isalnum()):
        reason = "must begin and end with a letter or number."
    elif ".." in bucket:
        reason = " must not contain two adjacent periods."
    elif _is_address(bucket):
        reason = "Bucket name cannot be represented as an IP address in dotted-decimal notation."
    elif bucket.startswith("goog"):
        reason = 'cannot begin with the "goog" prefix.'
    if reason:
        raise ApiError(400, "Invalidbucket_name", f"Invalid GCS Bucket Name `{bucket}`: {reason}")


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
