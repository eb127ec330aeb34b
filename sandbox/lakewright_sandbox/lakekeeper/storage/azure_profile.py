"""Storage profiles and credentials of Azure Data Lake Storage: shape, normal form, permitted updates.

Source: `az_profile.rs` and `adls_location.rs` of Lakekeeper 0.13.3; the recordings in `12-other-storage` have its
responses.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.base import (
    StorageCredentialBody,
    StorageLayoutBody,
    StorageProfileBody,
    check_variant,
    prefixes_overlap,
    refuse_changes,
)

DEFAULT_HOST = "dfs.core.windows.net"
MAX_SAS_SECONDS = 7 * 24 * 60 * 60
AzCredentialType = Literal["client-credentials", "shared-access-key", "azure-system-identity"]
NEEDED = {"client-credentials": ("client_id", "tenant_id", "client_secret"), "shared-access-key": ("key",)}


class AdlsProfileBody(StorageProfileBody):
    """An Azure profile. The order of fields is that of the server's responses."""

    type: Literal["adls"]
    filesystem: str
    key_prefix: str | None = None
    account_name: str
    authority_host: str | None = None
    host: str | None = None
    sas_token_validity_seconds: Annotated[int, Field(ge=0)] | None = None
    allow_alternative_protocols: bool = False
    sas_enabled: bool = True
    storage_layout: StorageLayoutBody | None = None

    @field_validator("authority_host")
    @classmethod
    def _url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if not parts.scheme:
            raise ValueError(f'relative URL without a base: "{url}"')
        return url if parts.path else f"{url}/"

    def normalize(self) -> AdlsProfileBody:
        """Return the profile as the server stores it. Raises the server's 400 for an invalid profile."""
        self._check_location()
        if self.sas_token_validity_seconds == 0:
            raise ApiError(
                400, "Invalidsas-token-validity-seconds", "SAS token validity must be greater than 0 seconds."
            )
        if (self.sas_token_validity_seconds or 0) > MAX_SAS_SECONDS:
            message = f"SAS token validity must not exceed {MAX_SAS_SECONDS} seconds."
            raise ApiError(400, "Invalidsas-token-validity-seconds", message)
        _check_filesystem(self.filesystem)
        if self.host and "/" in self.host:
            raise ApiError(400, "Invalidhost", f"Invalid ADLS host `{self.host}`: Must not contain slashes.")
        prefix = (self.key_prefix or "").strip("/") or None
        if prefix and len(prefix.encode()) > 512:
            message = "Storage Profile `key-prefix` must be less than 512 characters."
            raise ApiError(400, "Invalidkey-prefix", message)
        _check_account(self.account_name)
        return self.model_copy(update={"key_prefix": prefix, "host": self.host or None})

    def _check_location(self) -> None:
        """Refuse a host that makes the base location an invalid URL."""
        host = self.host
        if host is not None and (not re.fullmatch(r"[^\s:@?#\[\]<>^|%\\]+", host) or host.endswith(("/", "."))):
            location = f"abfss://{self.filesystem}@{self.account_name}.{host}/"
            raise ApiError(400, "InvalidLocation", f"Invalid location `{location}`: it is not a valid URL.")

    @property
    def base_location(self) -> str:
        """Return the location of the warehouse's data."""
        account_location = f"abfss://{self.filesystem}@{self.account_name}.{self.host or DEFAULT_HOST}"
        return f"{account_location}/{self.key_prefix}" if self.key_prefix else account_location

    def overlaps(self, other: AdlsProfileBody) -> bool:
        """Return whether either location contains the other."""
        mine = (self.filesystem, self.account_name, self.host, self.authority_host)
        theirs = (other.filesystem, other.account_name, other.host, other.authority_host)
        return mine == theirs and prefixes_overlap(self.key_prefix, other.key_prefix)

    def update_from(self, new: AdlsProfileBody) -> AdlsProfileBody:
        """Return the profile after an update; the account may change. Raises 400 `UpdateError` for fixed fields."""
        refuse_changes(self, new, "filesystem", "key_prefix", "authority_host", "host")
        return new.model_copy(update={"storage_layout": new.storage_layout or self.storage_layout})


class AzCredential(StorageCredentialBody):
    """An account's key, an application's secret, or the server's own identity."""

    type: Literal["az"]
    credential_type: AzCredentialType
    client_id: str | None = None
    tenant_id: str | None = None
    client_secret: str | None = None
    key: str | None = None

    @field_validator("credential_type", mode="before")
    @classmethod
    def _check_variant(cls, name: Any) -> Any:
        return check_variant(name, get_args(AzCredentialType))

    @model_validator(mode="after")
    def _complete(self) -> AzCredential:
        for name in NEEDED.get(self.credential_type, ()):
            if getattr(self, name) is None:
                raise ValueError(f"missing field `{name.replace('_', '-')}`")
        return self


def _check_filesystem(name: str) -> None:
    reason = None
    if "--" in name:
        reason = "Filesystem name must not contain consecutive hyphens."
    elif not 3 <= len(name) <= 63:
        reason = "Filesystem name must be between 3 and 63 characters long."
    elif not re.fullmatch(r"[a-z0-9-]+", name):
        reason = "Filesystem name can only contain lowercase letters, numbers, and hyphens (-)."
    elif name.startswith("-") or name.endswith("-"):
        reason = "Filesystem name must begin and end with a letter or number."
    if reason:
        raise ApiError(400, "Invalidfilesystem", f"Invalid ADLS filesystem / container name `{name}`: {reason}")


def _check_account(name: str) -> None:
    reason = None
    if not 3 <= len(name) <= 24:
        reason = "Must be between 3 and 24 characters long."
    elif not re.fullmatch(r"[a-z0-9]+", name):
        reason = "Must contain only lowercase letters and numbers."
    if reason:
        raise ApiError(400, "Invalidaccount_name", f"Invalid ADLS Account Name `{name}`: {reason}")
