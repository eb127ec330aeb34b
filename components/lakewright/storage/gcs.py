"""Backend `gcs`: an existing bucket of Google Cloud Storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lakewright_spark.catalog.warehouse import StorageKind

from lakewright.credentials.references import Reference
from lakewright.names.types import GcsBucketName
from lakewright.storage.backend import Question, StorageAddress, WarehouseAccess
from lakewright.storage.cloud import CloudStorage
from lakewright.storage.live_storage import LiveStorage
from lakewright.validation.strict_model import StrictModel

if TYPE_CHECKING:
    import pulumi

_ENDPOINT = "https://storage.googleapis.com"
_IDENTITY = "gcp-system-identity"


class GoogleCredential(StrictModel):
    """The key of a service account, by reference."""

    service_account_key: Reference
    """Key file of the service account, as JSON."""


class GcsStorage(CloudStorage):
    """A bucket of Google Cloud Storage that exists. The stack makes nothing in it."""

    summary: ClassVar[str] = "a bucket of Google Cloud Storage"
    service: ClassVar[StorageKind] = "gcs"
    key_field: ClassVar[str] = "service_account_key"
    url_scheme: ClassVar[str] = "gs"
    unsupported_settings: ClassVar[Mapping[str, str]] = {
        "remote_signing": "Lakekeeper signs requests to S3 only",
        "session_tags": "they belong to roles of AWS",
        "token_seconds": "Google decides how long a downscoped token is valid",
    }
    questions: ClassVar[Sequence[Question]] = (
        Question(
            "credential.service_account_key",
            "reference to the key file of a service account",
            option="service_account_key",
            default="config:service_account_key",
        ),
    )

    backend: Literal["gcs"]
    bucket: GcsBucketName
    credential: GoogleCredential | None = None
    """Credential that Lakekeeper uses. Default: Lakekeeper's own identity, which `tenant_specs.identity_locations` of
    the environment must allow, and which the server must have enabled."""

    @classmethod
    def read_back(cls, live: LiveStorage) -> dict[str, Any] | None:
        """Return the fields of a storage on GCS. A key has an empty reference."""
        if live.profile.get("type") != "gcs":
            return None
        fields = {"bucket": live.profile["bucket"]}
        has_identity = live.credential_type == _IDENTITY
        return fields if has_identity else fields | {"credential": {cls.key_field: ""}}

    @property
    def own_endpoint(self) -> str | None:
        """Address of the service."""
        return _ENDPOINT

    def storage_profile(self, access: WarehouseAccess, address: StorageAddress) -> dict[str, Any]:  # noqa: ARG002
        """Return a storage profile of type `gcs`."""
        return {
            "type": "gcs",
            "bucket": access.bucket,
            "key_prefix": access.key_prefix,
            "sts_enabled": access.settings["sts_enabled"],
        }

    def storage_credential(self, external_id: pulumi.Input[str] | None) -> dict[str, Any]:  # noqa: ARG002 - no role
        """Return the credential, the secret by reference."""
        if self.credential is None:
            return {"type": _IDENTITY}
        return {"type": "service-account-key", "key": self.credential.service_account_key}

    def client_options(self, address: StorageAddress) -> dict[str, str]:  # noqa: ARG002 - clients know it
        """Return no options: clients know the address of the service."""
        return {}
