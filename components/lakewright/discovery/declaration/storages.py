"""The storages of a spec from storage profiles of warehouses. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.discovery.listing.aws_roles import RoleFacts
from lakewright.discovery.listing.buckets import BucketFacts
from lakewright.field_map.marks import NotExpressibleError
from lakewright.lakekeeper.buckets import bucket_settings
from lakewright.storage.live_storage import AccessKeys, LiveStorage
from lakewright.storage.registry import BACKENDS


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


def declare_storage(profile: Mapping[str, Any], credential: str | None, hints: StorageHints) -> dict[str, Any]:
    """Return the storage of a warehouse as a spec has it; only what is not a default.

    Args:
        profile: Storage profile in the server's JSON.
        credential: Type of the warehouse's credential, if the server reports it.
        hints: Facts that the server does not return.

    Raises:
        NotExpressibleError: Specs have no such storage.
    """
    live = LiveStorage(profile, credential, hints.keys, hints.roles)
    for name, backend in BACKENDS.items():
        fields = backend.read_back(live)
        if fields is not None:
            return {"backend": name, **fields}
    raise NotExpressibleError(f"storage of type `{profile.get('type')}` has no backend in specs")


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


TENANT_TAG = "lakewright:tenant"
OWNER_TAG = "lakewright:owner"
_DAYS = re.compile(r'"NoncurrentDays": (\d+)')


def derive_fields(bucket: str, facts: BucketFacts) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a storage whose bucket the stack makes, and the settings that no field can express."""
    fields: dict[str, Any] = {"create": True}
    problems: list[str] = []
    if facts.versioning:
        fields["versioning"] = True
    days = _DAYS.search(facts.lifecycle or "")
    if facts.lifecycle and days and bucket_settings.lifecycle(int(days[1])) == facts.lifecycle and facts.versioning:
        fields["noncurrent_version_days"] = int(days[1])
    elif facts.lifecycle:
        problems.append("its lifecycle rules differ from the rules of `noncurrent_version_days`")
    if facts.policy == bucket_settings.tls_only(bucket):
        fields["tls_only"] = True
    elif facts.policy:
        problems.append("its bucket policy differs from the policy of `tls_only`")
    return fields, problems


def derive_labels(facts: BucketFacts, environment_tags: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a tenant: the tags of its bucket that neither the environment nor the toolkit sets."""
    return {
        key: value
        for key, value in facts.tags.items()
        if key not in {TENANT_TAG, OWNER_TAG} and environment_tags.get(key) != value
    }


def find_tag_problems(facts: BucketFacts, expected: Mapping[str, str]) -> list[str]:
    """Return the tags that a stack would change."""
    names = sorted(facts.tags.keys() | expected.keys())
    differing = [name for name in names if facts.tags.get(name) != expected.get(name)]
    return [f"the stack would change its tags {', '.join(differing)}"] if differing else []
