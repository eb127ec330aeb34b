"""A bucket of a store that a stack takes over with its settings. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakewright.discovery.listing.buckets import BucketFacts
from lakewright.lakekeeper.buckets import bucket_settings

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
