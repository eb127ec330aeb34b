"""Storage on Google Cloud Storage. Tested by its requests alone: the sandbox has no such storage."""

from typing import Annotated, Any, Literal

from lakewright.lakekeeper.declared import Declared, Replace, ServerKeeps
from lakewright.lakekeeper.storage_layout import StorageLayout
from lakewright.types import GcsBucketName, KeyPrefix


class GcsProfile(Declared):
    """Storage on GCS."""

    type: Literal["gcs"]
    bucket: Annotated[GcsBucketName, Replace()]
    key_prefix: Annotated[KeyPrefix, Replace()] = ""
    sts_enabled: bool = True
    storage_layout: Annotated[StorageLayout | None, ServerKeeps()] = None

    @property
    def roles(self) -> tuple[str, ...]:
        """There are no roles to assume."""
        return ()

    @property
    def place(self) -> tuple[Any, ...]:
        """What tells it from other storage, and never changes."""
        return self.type, self.bucket, self.key_prefix

    @property
    def where(self) -> str:
        """Where it is, for people."""
        return f"gs://{self.bucket}/{self.key_prefix}".rstrip("/")
