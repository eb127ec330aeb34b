"""Open the backend of a URL. The URL's scheme chooses the storage."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from lakewright_engine.model.errors import UnsupportedFeatureError
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.storage.bucket import BucketStorage
from lakewright_engine.storage.bucket_locks import BucketLocks
from lakewright_engine.storage.file_locks import FileLocks
from lakewright_engine.storage.folder import FolderStorage


def _open_folder(url: str) -> StateBackend:
    storage = FolderStorage(url)
    return StateBackend(url, storage, lambda folder: FileLocks(storage.root / folder))


def _open_bucket(url: str) -> StateBackend:
    storage = BucketStorage(url)
    return StateBackend(url, storage, lambda folder: BucketLocks(storage, folder))


BACKENDS: dict[str, Callable[[str], StateBackend]] = {"file": _open_folder, "s3": _open_bucket}
"""Scheme of a URL -> function that opens its backend."""


def is_native(url: str) -> bool:
    """Return whether this engine reads the backend of a URL; others need the Pulumi CLI."""
    return _scheme(url) in BACKENDS


def open_backend(url: str) -> StateBackend:
    """Return the backend of a URL. Relative paths start at the working directory.

    Raises:
        UnsupportedFeatureError: This engine does not read backends of this kind.
    """
    opener = BACKENDS.get(_scheme(url))
    if opener is None:
        schemes = " and ".join(f"{scheme}://" for scheme in BACKENDS)
        raise UnsupportedFeatureError(
            f"the embedded engine reads {schemes} backends only, not '{_scheme(url)}'; use --engine pulumi for "
            "that backend"
        )
    return opener(url)


def _scheme(url: str) -> str:
    scheme, separator, _ = url.partition("://")
    return scheme if separator else urlsplit(url).scheme or url
