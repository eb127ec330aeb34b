"""Types of the part of s3fs that this repository uses. s3fs has none of its own."""

from collections.abc import Sequence
from typing import Any

class S3FileSystem:
    def __init__(
        self,
        *,
        key: str | None = None,
        secret: str | None = None,
        token: str | None = None,
        endpoint_url: str | None = None,
        client_kwargs: dict[str, Any] | None = None,
        use_listings_cache: bool = True,
        skip_instance_cache: bool = False,
    ) -> None: ...
    def find(self, path: str, *, detail: bool = False) -> Any: ...
    def copy(self, path1: Sequence[str], path2: Sequence[str], *, batch_size: int | None = None) -> None: ...
    def info(self, path: str) -> dict[str, Any]: ...
    def cat_file(self, path: str) -> bytes: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
