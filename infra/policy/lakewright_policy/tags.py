"""Rule on tags: AWS objects that cost money or give access name their owner."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, as_mapping

OWNER = "lakewright:owner"
_TAGGED = re.compile(r"aws:s3/bucket(V2)?:Bucket(V2)?|aws:iam/(role:Role|policy:Policy|user:User)|aws:kms/key:Key")


def _find_missing_owner(resource: CheckedResource) -> Iterator[str]:
    if not resource.is_known("tags", "tagsAll"):
        return
    owner = as_mapping(resource.props.get("tags")).get(OWNER) or as_mapping(resource.props.get("tagsAll")).get(OWNER)
    if owner is not UNKNOWN and not owner:
        yield f"the tag `{OWNER}` is missing: name the person or team that owns the object"


MISSING_OWNER_TAG = ResourceRule("missing-owner-tag", "AWS objects name their owner.", _TAGGED, _find_missing_owner)
