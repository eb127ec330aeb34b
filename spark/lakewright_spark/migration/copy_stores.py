"""Object stores between which tables are copied: one store that copies files itself, or two stores."""

# boto3 has no types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import s3fs
from botocore.exceptions import BotoCoreError, ClientError
from typing_extensions import override

from lakewright_spark.catalog import CatalogWarehouse
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.file_digests import read_digests

Json = dict[str, Any]

BATCH = 64
"""Files that a store copies at the same time."""
COMPARED_AT_ONCE = 16 * BATCH
"""Files that a store copies before it compares them: an error deletes no more copies than these."""
STREAMS, PART_BYTES = 8, 16 * 2**20
"""Files that this process copies or deletes at the same time, and the bytes of each copy that it holds."""


@dataclass
class CopyStore(ABC):
    """The S3 stores of a table and its copy, with a key each."""

    source: s3fs.S3FileSystem
    target: s3fs.S3FileSystem

    @abstractmethod
    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files by source address, and compare each copy with its source. A wrong copy is deleted.

        After an error, no copy remains that was not compared.

        Raises:
            MigrationError: A file could not be copied, or its copy differs.
        """

    def compare(self, pairs: Mapping[str, str]) -> None:
        """Compare copies that an earlier run left with their sources, without reading them. A wrong copy is deleted.

        Raises:
            MigrationError: A copy differs.
        """
        with ThreadPoolExecutor(STREAMS, thread_name_prefix="compare") as pool:
            list(pool.map(self._compare, pairs, pairs.values()))

    def _compare(self, source_path: str, target_path: str) -> None:
        """Compare sizes, and the first of ETags and checksums that both files have as digests of their content."""
        with _explain_errors(f"{target_path} could not be compared with {source_path}"):
            original, copy = read_digests(self.source, source_path), read_digests(self.target, target_path)
            if original.is_equal(copy) is None:
                with suppress(PermissionError):  # without the right to use the key, the size remains
                    original = read_digests(self.source, source_path, has_checksums=True)
                    copy = read_digests(self.target, target_path, has_checksums=True)
        if original.is_equal(copy) is False:
            self._refuse_copy(source_path, target_path)

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

    def _refuse_copy(self, source_path: str, target_path: str) -> None:
        """Delete a copy that differs, and raise MigrationError."""
        self.delete([target_path])
        raise MigrationError(
            f"{target_path}: expected a copy of {source_path} with its size and checksum, found a file that differs "
            "(it was deleted). Run the command again"
        )

    @contextmanager
    def _delete_after_error(self, locations: Collection[str]) -> Generator[None]:
        """Delete the copies that remain in a collection if its copies are not all compared."""
        try:
            yield
        except BaseException:
            with suppress(MigrationError):  # a later run compares copies that it finds
                self.delete([*locations])
            raise


class S3Store(CopyStore):
    """One S3 store and a key that may read the source and write the target. The store itself copies the data."""

    def __init__(self, files: s3fs.S3FileSystem) -> None:
        """Use one store for both sides."""
        super().__init__(files, files)

    @override
    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files with CopyObject, in parts above 5 GB."""
        remaining = iter(pairs.items())
        while batch := dict(islice(remaining, COMPARED_AT_ONCE)):
            with self._delete_after_error(batch.values()):
                with _explain_errors(f"{len(batch)} files could not be copied"):
                    self.source.copy(list(batch), list(batch.values()), batch_size=BATCH)
                self.compare(batch)


class StorePair(CopyStore):
    """Two S3 stores. Data passes through this process, in parts."""

    @override
    def copy(self, pairs: Mapping[str, str]) -> None:
        """Copy files, several at a time."""

        def copy_file(pair: tuple[str, str]) -> None:
            with self._delete_after_error(pair[1:]):
                with _explain_errors(f"{pair[0]} could not be copied"):
                    digest = self._stream(*pair)
                with _explain_errors(f"{pair[1]} could not be compared with {pair[0]}"):
                    original, copy = read_digests(self.source, pair[0]), read_digests(self.target, pair[1])
                    copied_digest = copy.md5 or self._read_digest(pair[1])
                if original.size != copy.size or not digest == copied_digest == (original.md5 or digest):
                    self._refuse_copy(*pair)

        with ThreadPoolExecutor(STREAMS, thread_name_prefix="copy") as pool:
            list(pool.map(copy_file, pairs.items()))

    def _read_digest(self, location: str) -> str:
        """Return the MD5 sum of a copy whose store does not know it: written in parts, or encrypted with other keys."""
        digest = _start_digest()
        with cast(Any, self.target).open(location, "rb") as file:
            while part := file.read(PART_BYTES):
                digest.update(part)
        return digest.hexdigest()

    def _stream(self, source: str, target: str) -> str:
        """Copy a file in parts, and return its MD5 sum.

        An interrupted copy leaves no file: `close` would complete the upload.
        """
        digest = _start_digest()
        with cast(Any, self.source).open(source, "rb") as file:
            copy = cast(Any, self.target).open(target, "wb")
            try:
                shutil.copyfileobj(file, _DigestingWriter(copy, digest), PART_BYTES)
            except BaseException:
                copy.discard()
                copy.closed = True
                raise
            copy.close()
        return digest.hexdigest()


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


@dataclass
class _DigestingWriter:
    """Writes to a file, and adds what it writes to a digest."""

    file: Any
    digest: Any

    def write(self, content: bytes) -> None:
        self.digest.update(content)
        self.file.write(content)


def _start_digest() -> Any:
    return hashlib.md5(usedforsecurity=False)


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
