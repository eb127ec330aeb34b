"""The rules of the pack. A new rule is a constant in the module of its subject, and a line here."""

from __future__ import annotations

from lakewright_policy import buckets, pods, policy_documents, tags, trust, warehouses
from lakewright_policy.resource import ResourceRule, StackRule

RULES: tuple[ResourceRule, ...] = (
    buckets.PUBLIC_BUCKET,
    policy_documents.WILDCARD_ACTION,
    policy_documents.WIDE_RESOURCE,
    trust.OPEN_TRUST,
    trust.ADMINISTRATOR_POLICY,
    warehouses.STATIC_CREDENTIAL,
    warehouses.UNPROTECTED_WAREHOUSE,
    warehouses.SOFT_DELETE_OFF,
    pods.POD_SECRETS,
    pods.POD_PRIVILEGES,
    pods.IMAGE_WITHOUT_DIGEST,
    tags.MISSING_OWNER_TAG,
)

STACK_RULES: tuple[StackRule, ...] = (buckets.BLOCKED_BUCKET, buckets.ENCRYPTED_BUCKET)
