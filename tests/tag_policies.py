"""A tag policy of AWS Organizations in the sandbox, for the time of a test."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def attach_tag_policy(
    organizations: Any, key: str, values: Sequence[str] = (), *, resources: Sequence[str] = ("s3:bucket", "kms:key")
) -> Iterator[None]:
    """Allow these values of a tag while the block runs, as an administrator of the organization does.

    Args:
        organizations: A boto3 client of AWS Organizations.
        key: The tag's key in its only capitalization.
        values: Allowed values, which may have `*`; none allows all.
        resources: Resource types that the policy is enforced for; none has it reported only.
    """
    with contextlib.suppress(organizations.exceptions.AlreadyInOrganizationException):
        organizations.create_organization(FeatureSet="ALL")
    (root,) = organizations.list_roots()["Roots"]
    if not any(kind["Type"] == "TAG_POLICY" for kind in root["PolicyTypes"]):
        organizations.enable_policy_type(RootId=root["Id"], PolicyType="TAG_POLICY")
    rule: dict[str, Any] = {"tag_key": {"@@assign": key}, "enforced_for": {"@@assign": list(resources)}}
    if values:
        rule["tag_value"] = {"@@assign": list(values)}
    content = json.dumps({"tags": {key.lower(): rule}})
    created = organizations.create_policy(
        Name=f"tags-{uuid.uuid4()}", Description="test", Type="TAG_POLICY", Content=content
    )
    policy = created["Policy"]["PolicySummary"]["Id"]
    organizations.attach_policy(PolicyId=policy, TargetId=root["Id"])
    try:
        yield
    finally:
        organizations.detach_policy(PolicyId=policy, TargetId=root["Id"])
        organizations.delete_policy(PolicyId=policy)
