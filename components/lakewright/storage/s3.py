"""Backend `s3`: a bucket that exists in an S3-compatible store, reached with an access key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lakewright.credentials.references import Reference
from lakewright.names.types import Arn, Region
from lakewright.storage.backend import (
    AwsDefaults,
    BucketProbe,
    Question,
    StorageAddress,
    StorageBackend,
    WarehouseAccess,
    s3_profile,
)
from lakewright.storage.restricted_fields import TenantEndpoint, TenantStsEndpoint
from lakewright.validation.strict_model import StrictModel

if TYPE_CHECKING:
    import pulumi


class StoreCredential(StrictModel):
    """An access key of an S3-compatible store, by reference; Lakekeeper alone uses it."""

    access_key_id: Reference
    secret_access_key: Reference


class S3Storage(StorageBackend):
    """A bucket that exists in an S3-compatible store."""

    summary: ClassVar[str] = "a bucket of an S3-compatible store"
    questions: ClassVar[Sequence[Question]] = (
        Question("endpoint", "endpoint of the store", option="endpoint"),
        Question(
            "credential.access_key_id",
            "reference to the access key's id",
            option="access_key",
            default="config:store_access_key_id",
        ),
        Question(
            "credential.secret_access_key",
            "reference to the secret key",
            option="secret_key",
            default="config:store_secret_access_key",
        ),
    )

    backend: Literal["s3"]
    endpoint: TenantEndpoint
    region: Region = "local-01"
    path_style: bool = True
    credential: StoreCredential
    sts: bool = True
    """Whether the store has AssumeRole. Without it, credentials cannot be vended: use `delegation: remote-signing`."""
    sts_endpoint: TenantStsEndpoint | None = None
    sts_role_arn: Arn | None = None

    @classmethod
    def why_not_vended(cls, storage: Mapping[str, Any]) -> str | None:
        """Return why a store, as written, cannot vend credentials."""
        return "the storage has `sts: false`" if storage.get("sts") is False else None

    @property
    def own_endpoint(self) -> str | None:
        """Endpoint of the store."""
        return self.endpoint

    def address(self, defaults: AwsDefaults) -> StorageAddress:  # noqa: ARG002 - a store is not on AWS
        """Return the address of the store."""
        return StorageAddress(self.region, self.endpoint, path_style=self.path_style)

    def storage_profile(self, access: WarehouseAccess, address: StorageAddress) -> dict[str, Any]:
        """Return a storage profile of flavor `s3-compat`."""
        return s3_profile("s3-compat", access, address, sts_endpoint=self.sts_endpoint, sts_role_arn=self.sts_role_arn)

    def storage_credential(self, external_id: pulumi.Input[str] | None) -> dict[str, Any]:  # noqa: ARG002 - no role
        """Return the access key, by reference."""
        return {"type": "access-key", **self.credential.model_dump()}

    def probe(self) -> BucketProbe | None:
        """Return how the bucket is reached with the keys that Lakekeeper uses."""
        keys = self.credential
        address = StorageAddress(self.region, self.endpoint, path_style=self.path_style)
        return BucketProbe(self.bucket, address, keys.access_key_id, keys.secret_access_key)
