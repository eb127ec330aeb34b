"""Storage profile of Google Cloud Storage. Tests check its requests only: the sandbox has no such storage."""

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
    """Folder in the bucket for all data of the warehouse."""
    sts_enabled: bool = True
    """Whether tables are loaded with vended credentials."""
    storage_layout: Annotated[StorageLayout | None, ServerKeeps(), Since((0, 12))] = None
    """Layout of the folders of new tables below the prefix. If omitted, the server keeps its value."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Return no roles: this storage has none to assume."""
        return ()

    @property
    def place(self) -> tuple[Any, ...]:
        """Values that identify the storage and never change."""
        return self.type, self.bucket, self.key_prefix

    @property
    def where(self) -> str:
        """Location as a URL, for messages."""
        return f"gs://{self.bucket}/{self.key_prefix}".rstrip("/")
