"""Object stores between which tables are copied: one store that copies files itself, or two stores."""

# boto3 has no types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import shutil
from collections.abc import Collection, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import s3fs
from botocore.exceptions import BotoCoreError, ClientError

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError

Json = dict[str, Any]

BATCH = 64
"""Files that a store copies at the same time."""
STREAMS, PART_BYTES = 8, 16 * 2**20
"""Files that this process copies or deletes at the same time, and the bytes of each copy that it holds."""


class CopyStore(Protocol):
    """The stores of a table and its copy."""

    def list_files(self, location: str) -> Mapping[str, int]:
        """Return the bytes of each file below a location of the copy, by address."""
        ...

    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files by source address."""
        ...

    def read(self, location: str) -> bytes:
        """Return the content of a file of the table."""
        ...

    def read_copy(self, location: str) -> bytes:
        """Return the content of a file of the copy."""
        ...

    def write(self, location: str, content: bytes) -> None:
        """Write a file of the copy, in one step."""
        ...

    def delete(self, locations: Collection[str]) -> None:
        """Delete files of the copy."""
        ...


@dataclass
class S3Store:
    """One S3 store and a key that may read the source and write the target. The store itself copies the data."""

    files: s3fs.S3FileSystem

    @classmethod
    def open(cls, config: CatalogConfig, warehouse: str) -> S3Store:
        """Open the store of a warehouse whose configuration has S3 keys.

        Raises:
            MigrationError: The warehouse has no keys.
            IdentityError: A key cannot be read.
        """
        if config.warehouse(warehouse).s3_keys is None:
            raise MigrationError(
                f"warehouse {warehouse} of --from: expected `s3_keys`, a key that may read the source's files and write"
                " to the target's locations; found none. Tables are copied with it"
            )
        return cls(open_files(config, warehouse))

    def list_files(self, location: str) -> Mapping[str, int]:
        """Return the bytes of each file below a location, by address."""
        return _list_files(self.files, location)

    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files with CopyObject, in parts above 5 GB. Compare sizes and, if both are MD5 sums, ETags."""
        if not pairs:
            return
        with _explain_errors(f"{len(pairs)} files could not be copied"):
            self.files.copy(list(pairs), list(pairs.values()), batch_size=BATCH)
        for source, target in pairs.items():
            _compare(self.files, source, self.files, target)

    def read(self, location: str) -> bytes:
        """Return the content of a file."""
        return _read(self.files, location)

    def read_copy(self, location: str) -> bytes:
        """Return the content of a file."""
        return _read(self.files, location)

    def write(self, location: str, content: bytes) -> None:
        """Write a file, in one step."""
        _write(self.files, location, content)

    def delete(self, locations: Collection[str]) -> None:
        """Delete files."""
        _delete(self.files, locations)


@dataclass
class StorePair:
    """Two S3 stores with a key each. Data passes through this process, in parts."""

    source: s3fs.S3FileSystem
    target: s3fs.S3FileSystem

    def list_files(self, location: str) -> Mapping[str, int]:
        """Return the bytes of each file below a location of the target, by address."""
        return _list_files(self.target, location)

    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files, several at a time. Compare sizes and, if both are MD5 sums, ETags."""

        def copy_file(pair: tuple[str, str]) -> None:
            with _explain_errors(f"{pair[0]} could not be copied"):
                self._stream(*pair)
            _compare(self.source, pair[0], self.target, pair[1])

        with ThreadPoolExecutor(STREAMS, thread_name_prefix="copy") as pool:
            list(pool.map(copy_file, pairs.items()))

    def _stream(self, source: str, target: str) -> None:
        """Copy a file in parts. An interrupted copy leaves no file: `close` would complete the upload."""
        with cast(Any, self.source).open(source, "rb") as file:
            copy = cast(Any, self.target).open(target, "wb")
            try:
                shutil.copyfileobj(file, copy, PART_BYTES)
            except BaseException:
                copy.discard()
                copy.closed = True
                raise
            copy.close()

    def read(self, location: str) -> bytes:
        """Return the content of a file of the source."""
        return _read(self.source, location)

    def read_copy(self, location: str) -> bytes:
        """Return the content of a file of the target."""
        return _read(self.target, location)

    def write(self, location: str, content: bytes) -> None:
        """Write a file of the target, in one step."""
        _write(self.target, location, content)

    def delete(self, locations: Collection[str]) -> None:
        """Delete files of the target."""
        _delete(self.target, locations)


def open_files(config: CatalogConfig, warehouse: str) -> s3fs.S3FileSystem:
    """Return the store of a warehouse whose configuration has `s3_keys`.

    Raises:
        IdentityError: A key cannot be read.
    """
    settings = config.warehouse(warehouse)
    assert settings.s3_keys is not None
    secrets = settings.s3_keys.secret_options()
    return s3fs.S3FileSystem(
        key=secrets["s3.access-key-id"],
        secret=secrets["s3.secret-access-key"],
        token=secrets.get("s3.session-token"),
        endpoint_url=settings.s3.get("s3.endpoint"),
        client_kwargs={"region_name": settings.s3.get("s3.region") or settings.s3.get("client.region")},
        use_listings_cache=False,
        skip_instance_cache=True,
    )


@contextmanager
def _explain_errors(problem: str) -> Generator[None]:
    """Turn errors of a store into MigrationError."""
    try:
        yield
    except (OSError, BotoCoreError, ClientError) as error:
        text = str(error).splitlines()
        raise MigrationError(f"{problem}: {type(error).__name__}{f': {text[0]}' if text else ''}") from error


def _list_files(files: s3fs.S3FileSystem, location: str) -> Mapping[str, int]:
    scheme = location.partition("://")[0]
    with _explain_errors(f"{location} could not be listed"):
        details = cast(dict[str, Json], files.find(location, detail=True))
    return {f"{scheme}://{path}": file["size"] for path, file in details.items()}


def _read(files: s3fs.S3FileSystem, location: str) -> bytes:
    with _explain_errors(f"{location} could not be read"):
        return files.cat_file(location)


def _write(files: s3fs.S3FileSystem, location: str, content: bytes) -> None:
    with _explain_errors(f"{location} could not be written"):
        files.pipe_file(location, content)


def _compare(source: s3fs.S3FileSystem, source_path: str, target: s3fs.S3FileSystem, target_path: str) -> None:
    """Raise MigrationError unless a copy has the size and checksum of its source. A wrong copy is deleted."""
    with _explain_errors(f"{target_path} could not be compared with {source_path}"):
        original, copy = source.info(source_path), target.info(target_path)
    tags = [str(file.get("ETag", "")).strip('"') for file in (original, copy)]
    # The tag of a file that was written in parts depends on its parts.
    is_comparable = all(len(tag) == 32 for tag in tags)
    if original["size"] != copy["size"] or (is_comparable and tags[0] != tags[1]):
        _delete(target, [target_path])
        raise MigrationError(f"{target_path}: expected a copy of {source_path} with its size and checksum")


def _delete(files: s3fs.S3FileSystem, locations: Collection[str]) -> None:
    def delete_file(location: str) -> None:
        with _explain_errors(f"{location} could not be deleted"):
            cast(Any, files).rm_file(location)  # `rm` reads brackets in names as patterns

    with ThreadPoolExecutor(STREAMS, thread_name_prefix="delete") as pool:
        list(pool.map(delete_file, locations))
