"""Storage on Google Cloud Storage. Tested by its requests alone: the sandbox has no such storage."""

from typing import Annotated, Any, Literal

from lakewright.lakekeeper.provider.inputs import Declared, Replace, ServerKeeps, Since
from lakewright.lakekeeper.storage.layout import StorageLayout
from lakewright.names.types import GcsBucketName, GcsKeyPrefix


class GcsProfile(Declared):
    """Storage on GCS."""

    type: Literal["gcs"]
    """`gcs`: Google Cloud Storage."""
    bucket: Annotated[GcsBucketName, Replace()]
    """Name of the bucket."""
    key_prefix: Annotated[GcsKeyPrefix, Replace()] = ""
    """Folder in the bucket that everything lies under."""
    sts_enabled: bool = True
    """Whether tables are loaded with vended credentials."""
    storage_layout: Annotated[StorageLayout | None, ServerKeeps(), Since((0, 12))] = None
    """Where new tables go below the prefix. Left out: as the server has it."""

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
