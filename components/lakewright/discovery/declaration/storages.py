"""The storages of a spec from storage profiles of warehouses. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.discovery.listing.aws_roles import RoleFacts
from lakewright.discovery.listing.buckets import BucketFacts
from lakewright.errors import LakewrightError
from lakewright.names.types import normalize_endpoint
from lakewright.storage.s3 import S3Storage

NAMESPACE_OF_STORE_KEYS = "config"
"""Form of the references that stand for credentials until a person names other references."""


@dataclass(frozen=True)
class AccessKeys:
    """References to an access key of a store."""

    access_key_id: str
    secret_access_key: str


@dataclass(frozen=True)
class StorageHints:
    """Facts about storages that a server does not return."""

    keys: AccessKeys | None = None
    """References that a person named for the keys of stores."""
    roles: Mapping[str, RoleFacts] = field(default_factory=dict[str, RoleFacts])
    """Roles by ARN."""
    buckets: Mapping[str, BucketFacts] = field(default_factory=dict[str, BucketFacts])
    """Buckets that a person wants in the stack, by name."""
    environment_tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tags of all objects of the environment."""


class UndeclarableStorageError(LakewrightError):
    """A storage has no form in specs. The message is the reason."""


def declare_storage(profile: Mapping[str, Any], credential: str | None, hints: StorageHints) -> dict[str, Any]:
    """Return the storage of a warehouse as a spec has it; only what is not a default.

    Args:
        profile: Storage profile in the server's JSON.
        credential: Type of the warehouse's credential, if the server reports it.
        hints: Facts that the server does not return.

    Raises:
        UndeclarableStorageError: Specs have no such storage.
    """
    kind = profile.get("type")
    if kind != "s3":
        raise UndeclarableStorageError(f"storage of type `{kind}` has no backend in specs")
    if (profile.get("flavor") or "aws") == "aws":
        return _declare_on_aws(profile, credential, hints)
    return _declare_in_store(profile, credential, hints)


def _declare_on_aws(profile: Mapping[str, Any], credential: str | None, hints: StorageHints) -> dict[str, Any]:
    role = str(profile.get("assume-role-arn") or "").strip()
    if credential == "access-key":
        raise UndeclarableStorageError("it has an access key on AWS; specs reach AWS by a role with an external ID")
    if not role:
        raise UndeclarableStorageError("it has no `assume-role-arn`; specs reach AWS by a role with an external ID")
    facts = hints.roles.get(role, RoleFacts())
    if facts.is_known and facts.external_id is None:
        raise UndeclarableStorageError(
            f"the trust policy of {role} requires no `sts:ExternalId`; specs always send it. Add the condition, and"
            " the ID to the warehouse's credential"
        )
    fields = {
        "backend": "existing",
        "bucket": profile["bucket"],
        "region": profile["region"],
        "role_arn": role,
        "external_id": facts.external_id,
        "kms_key_arn": profile.get("aws-kms-key-arn") or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _declare_in_store(profile: Mapping[str, Any], credential: str | None, hints: StorageHints) -> dict[str, Any]:
    if credential not in {None, "access-key"}:
        reason = "whose account id the server does not show" if credential == "cloudflare-r2" else "not an access key"
        raise UndeclarableStorageError(f"its credential is of type `{credential}`, {reason}; declare it manually")
    endpoint = profile.get("endpoint")
    if not endpoint:
        raise UndeclarableStorageError("it is in an S3-compatible store without an `endpoint`")
    fields: dict[str, Any] = {
        "backend": "s3",
        "bucket": profile["bucket"],
        "endpoint": normalize_endpoint(str(endpoint)).rstrip("/"),
        "region": profile["region"],
        "path_style": bool(profile.get("path-style-access")),
        "sts_endpoint": profile.get("sts-endpoint"),
        "sts_role_arn": profile.get("sts-role-arn") or None,
    }
    defaults = {name: S3Storage.model_fields[name].default for name in ("region", "path_style")}
    fields = {name: value for name, value in fields.items() if value is not None and value != defaults.get(name)}
    keys = hints.keys or AccessKeys("", "")
    return fields | {"credential": {"access_key_id": keys.access_key_id, "secret_access_key": keys.secret_access_key}}


class StorageNames:
    """Storages of a spec by name: `main`, or the names of their buckets."""

    def __init__(self) -> None:
        """Create an empty collection."""
        self._storages: dict[str, dict[str, Any]] = {}

    def add(self, storage: dict[str, Any]) -> str:
        """Add a storage, and return its key. Equal storages have one key."""
        key = json.dumps(storage, sort_keys=True)
        self._storages.setdefault(key, storage)
        return key

    def assign_names(self) -> dict[str, str]:
        """Return the name of each storage by its key."""
        if len(self._storages) == 1:
            return dict.fromkeys(self._storages, "main")
        names: dict[str, str] = {}
        for key, storage in self._storages.items():
            base = derive_storage_name(str(storage["bucket"]))
            taken = set(names.values())
            candidates = (f"{base}-{number}" for number in range(2, len(self._storages) + 2))
            names[key] = base if base not in taken else next(name for name in candidates if name not in taken)
        return names

    def storage(self, key: str) -> dict[str, Any]:
        """Return the storage with a key."""
        return self._storages[key]


def derive_storage_name(bucket: str) -> str:
    """Return the name of a storage in a spec for a bucket: a label of at most 37 characters."""
    label = re.sub(r"[^a-z0-9-]+", "-", bucket.lower()).strip("-")
    label = label if label[:1].isalpha() else f"s-{label}"
    return label[:37].rstrip("-")


def make_placeholder_keys(storage: str) -> AccessKeys:
    """Return references to keys of the stack's configuration, for a store without named credentials."""
    stem = storage.replace("-", "_")
    space = NAMESPACE_OF_STORE_KEYS
    return AccessKeys(f"{space}:{stem}_access_key_id", f"{space}:{stem}_secret_access_key")
