"""Object stores between which tables are copied: one store that copies files itself, or two stores."""

# boto3 has no types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import s3fs
from botocore.exceptions import BotoCoreError, ClientError
from typing_extensions import override

from lakewright_spark.catalog import CatalogWarehouse
from lakewright_spark.errors import MigrationError

Json = dict[str, Any]

BATCH = 64
"""Files that a store copies at the same time."""
STREAMS, PART_BYTES = 8, 16 * 2**20
"""Files that this process copies or deletes at the same time, and the bytes of each copy that it holds."""


@dataclass
class CopyStore(ABC):
    """The S3 stores of a table and its copy, with a key each."""

    source: s3fs.S3FileSystem
    target: s3fs.S3FileSystem

    @abstractmethod
    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files by source address. Compare sizes and, if both are MD5 sums, ETags."""

    def list_files(self, location: str) -> Mapping[str, int]:
        """Return the bytes of each file below a location of the copy, by address."""
        scheme = location.partition("://")[0]
        with _explain_errors(f"{location} could not be listed"):
            details = cast(dict[str, Json], self.target.find(location, detail=True))
        return {f"{scheme}://{path}": file["size"] for path, file in details.items()}

    def read(self, location: str) -> bytes:
        """Return the content of a file of the table."""
        return _read(self.source, location)

    def read_copy(self, location: str) -> bytes:
        """Return the content of a file of the copy."""
        return _read(self.target, location)

    def write(self, location: str, content: bytes) -> None:
        """Write a file of the copy, in one step."""
        with _explain_errors(f"{location} could not be written"):
            self.target.pipe_file(location, content)

    def delete(self, locations: Collection[str]) -> None:
        """Delete files of the copy."""

        def delete_file(location: str) -> None:
            with _explain_errors(f"{location} could not be deleted"):
                cast(Any, self.target).rm_file(location)  # `rm` reads brackets in names as patterns

        with ThreadPoolExecutor(STREAMS, thread_name_prefix="delete") as pool:
            list(pool.map(delete_file, locations))

    def _compare(self, source_path: str, target_path: str) -> None:
        """Raise MigrationError unless a copy has the size and checksum of its source. A wrong copy is deleted."""
        with _explain_errors(f"{target_path} could not be compared with {source_path}"):
            original, copy = self.source.info(source_path), self.target.info(target_path)
        tags = [str(file.get("ETag", "")).strip('"') for file in (original, copy)]
        # The tag of a file that was written in parts depends on its parts.
        is_comparable = all(len(tag) == 32 for tag in tags)
        if original["size"] != copy["size"] or (is_comparable and tags[0] != tags[1]):
            self.delete([target_path])
            raise MigrationError(f"{target_path}: expected a copy of {source_path} with its size and checksum")


class S3Store(CopyStore):
    """One S3 store and a key that may read the source and write the target. The store itself copies the data."""

    def __init__(self, files: s3fs.S3FileSystem) -> None:
        """Use one store for both sides."""
        super().__init__(files, files)

    @override
    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files with CopyObject, in parts above 5 GB."""
        if not pairs:
            return
        with _explain_errors(f"{len(pairs)} files could not be copied"):
            self.source.copy(list(pairs), list(pairs.values()), batch_size=BATCH)
        for source, target in pairs.items():
            self._compare(source, target)


class StorePair(CopyStore):
    """Two S3 stores. Data passes through this process, in parts."""

    @override
    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files, several at a time."""

        def copy_file(pair: tuple[str, str]) -> None:
            with _explain_errors(f"{pair[0]} could not be copied"):
                self._stream(*pair)
            self._compare(*pair)

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


def open_copy_store(source: CatalogWarehouse, target: CatalogWarehouse) -> CopyStore:
    """Return one store, whose key in `--from` may use both sides, or two stores if `--to` has another key.

    Raises:
        MigrationError: The source has no key.
        IdentityError: A key cannot be read.
    """
    if source.s3_keys is None:
        raise MigrationError(
            f"warehouse {source.name} of --from: expected `s3_keys`, a key that may read the source's files and write"
            " to the target's locations (a target in another store has its own `s3_keys` in --to); found none. Tables"
            " are copied with it"
        )
    files = _open_files(source)
    is_one_store = target.s3_keys is None or (source.s3_keys, _find_endpoint(source)) == (
        target.s3_keys,
        _find_endpoint(target),
    )
    return S3Store(files) if is_one_store else StorePair(files, _open_files(target))


def _find_endpoint(warehouse: CatalogWarehouse) -> tuple[str | None, str | None]:
    """Return the address and region of a warehouse's store."""
    return warehouse.s3.get("s3.endpoint"), warehouse.s3.get("s3.region") or warehouse.s3.get("client.region")


def _open_files(settings: CatalogWarehouse) -> s3fs.S3FileSystem:
    assert settings.s3_keys is not None
    endpoint, region = _find_endpoint(settings)
    secrets = settings.s3_keys.secret_options()
    return s3fs.S3FileSystem(
        key=secrets["s3.access-key-id"],
        secret=secrets["s3.secret-access-key"],
        token=secrets.get("s3.session-token"),
        endpoint_url=endpoint,
        client_kwargs={"region_name": region},
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def _read(files: s3fs.S3FileSystem, location: str) -> bytes:
    with _explain_errors(f"{location} could not be read"):
        return files.cat_file(location)


@contextmanager
def _explain_errors(problem: str) -> Generator[None]:
    """Turn errors of a store into MigrationError."""
    try:
        yield
    except (OSError, BotoCoreError, ClientError) as error:
        text = str(error).splitlines()
        raise MigrationError(f"{problem}: {type(error).__name__}{f': {text[0]}' if text else ''}") from error
