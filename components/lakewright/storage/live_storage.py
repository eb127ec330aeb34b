"""LiveStorage: a storage as a server reports it, from which a backend reads its fields back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class AccessKeys:
    """References to an access key of a store."""

    access_key_id: str
    secret_access_key: str


class RoleFactsReader(Protocol):
    """Facts about a role on AWS."""

    @property
    def external_id(self) -> str | None:
        """External ID that its trust policy requires; None without one."""
        ...

    @property
    def is_known(self) -> bool:
        """Whether the role could be read."""
        ...

    @property
    def problem(self) -> str:
        """Why the role could not be read; empty if it could."""
        ...


def is_in_s3(profile: Mapping[str, Any]) -> bool:
    """Return whether a storage profile, in the server's JSON or in properties, is on S3 or a store with its API."""
    return profile.get("type") == "s3"


def is_on_aws(profile: Mapping[str, Any]) -> bool:
    """Return whether a storage profile on S3 is on AWS."""
    return (profile.get("flavor") or "aws") == "aws"


ADLS_SETTINGS: Mapping[str, str] = {
    "sts_enabled": "sas_enabled",
    "sts_token_validity_seconds": "sas_token_validity_seconds",
}
"""Names on ADLS of settings of a warehouse, by their name on S3."""


def name_as_on_s3(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a storage profile with the names on S3, as fields of the spec set them."""
    names = {adls_name: name for name, adls_name in ADLS_SETTINGS.items()} if profile.get("type") == "adls" else {}
    return {names.get(name, name): value for name, value in profile.items()}


def name_path_as_on_s3(path: str) -> str:
    """Return the path of a property of a warehouse with the name on S3."""
    names = {f"storage.{adls_name}": f"storage.{name}" for name, adls_name in ADLS_SETTINGS.items()}
    return names.get(path, path)


@dataclass(frozen=True)
class LiveStorage:
    """A storage, with facts that the server does not report."""

    profile: Mapping[str, Any]
    """Storage profile in the server's JSON."""
    credential_type: str | None = None
    """Type of the warehouse's credential, if the server reports it."""
    keys: AccessKeys | None = None
    """References that a person named for the keys of stores."""
    roles: Mapping[str, RoleFactsReader] = field(default_factory=dict[str, RoleFactsReader])
    """Roles by ARN, as far as AWS was asked."""

    @property
    def is_on_aws(self) -> bool:
        """Whether the storage is on AWS."""
        return is_in_s3(self.profile) and is_on_aws(self.profile)


@dataclass(frozen=True)
class Placeholders:
    """References in place of values that cannot be read back, until a person sets or replaces them."""

    fields: Mapping[str, Any]
    references: tuple[str, ...]
    comment: str
    """Comment beside the storage in the written spec."""
