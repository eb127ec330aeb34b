"""S3-compatible stores by product: the parts of S3 that each product has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

StoreProduct = Literal["minio", "rustfs", "seaweedfs", "ceph", "r2"]


@dataclass(frozen=True)
class StoreFeatures:
    """Parts of S3 that a store has. `docs/stores.md` has the same table."""

    makes_buckets: bool = True
    """Whether a stack can make and empty a bucket: R2 cannot list versions, and marks no bucket with a tag."""
    needs_sts_role: bool = False
    """Whether AssumeRole needs the ARN of a role."""
    has_own_credential_api: bool = False
    """Whether Lakekeeper gets temporary credentials from an API of the store's own instead of STS."""


STORES: Mapping[StoreProduct, StoreFeatures] = {
    "minio": StoreFeatures(),
    "rustfs": StoreFeatures(),
    "seaweedfs": StoreFeatures(needs_sts_role=True),
    "ceph": StoreFeatures(needs_sts_role=True),
    "r2": StoreFeatures(makes_buckets=False, has_own_credential_api=True),
}
"""Features by the name that a spec gives a store."""
