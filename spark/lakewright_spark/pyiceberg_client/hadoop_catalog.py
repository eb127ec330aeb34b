"""HadoopCatalog: a catalog whose tables are folders with numbered metadata files, as Iceberg's Java client writes them.

A table is a folder with `metadata/v3.metadata.json`; `metadata/version-hint.text` has the last known number. Clients
continue from the hint to the last version that exists.
"""

from __future__ import annotations

import json
import re

from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.serializers import Compressor, FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

from lakewright_spark.pyiceberg_client.new_files import create_file

ATTEMPTS = 8
"""Attempts to block a table while other writers commit."""
BLOCK = "lakewright.blocked"
"""Key of a document that is no table metadata: clients that read it as the last version fail."""
_VERSION_FILE = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")
_HINT = "version-hint.text"


class HadoopCatalog(NoopCatalog):
    """Reads a Hadoop catalog and commits to its tables. It creates and drops no tables."""

    def __init__(self, name: str, **properties: str) -> None:
        """Use the folder `warehouse`."""
        super().__init__(name, **properties)
        self._root = properties["warehouse"].rstrip("/")
        self._io = PyArrowFileIO(properties)

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Return the namespaces below a namespace: folders that are no tables."""
        parent = self.identifier_to_tuple(namespace)
        return [(*parent, name) for name in self._list_folders(parent) if not self._list_versions((*parent, name))]

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the tables of a namespace."""
        parent = self.identifier_to_tuple(namespace)
        return [(*parent, name) for name in self._list_folders(parent) if self._list_versions((*parent, name))]

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table at its last version. Raises NoSuchTableError if the table does not exist or is blocked."""
        path = self.identifier_to_tuple(identifier)
        versions = self._list_versions(path)
        if not versions or self._is_block(versions[-1][1]):
            raise NoSuchTableError(f"Table does not exist: {'.'.join(path)}")
        return self._load(path, versions[-1][1])

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Write the next version of a table. Raises CommitFailedException if another writer wrote it."""
        path = table.name()
        current = self.load_table(path)
        for requirement in requirements:
            requirement.validate(current.metadata)
        metadata = update_table_metadata(
            current.metadata, updates, enforce_validation=False, metadata_location=current.metadata_location
        )
        location = self._next_version(path, current.metadata_location)
        self._create_version(path, location, metadata.model_dump_json().encode())
        self._write_hint(path)
        return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": location})

    def block(self, identifier: Identifier) -> None:
        """Write a next version that no client can read. Do nothing if the table is blocked.

        Raises:
            CommitFailedException: Other writers took each version that was tried.
        """
        content = _build_block({}).encode()
        for attempt in range(ATTEMPTS):
            last = self._list_versions(identifier)[-1][1]
            if self._is_block(last):
                return
            try:
                self._create_version(identifier, self._next_version(identifier, last), content)
            except CommitFailedException:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    def unblock(self, identifier: Identifier) -> None:
        """Delete the versions that no client can read."""
        _, blocks = self._split_blocks(identifier)
        for _, location in reversed(blocks):
            self._io.delete(location)

    def load_blocked(self, identifier: Identifier) -> Table | None:
        """Return a blocked table at the last version before the block; None if it is not blocked.

        The block's own properties are among its properties.
        """
        versions, blocks = self._split_blocks(identifier)
        if not versions or not blocks:
            return None
        table = self._load(identifier, versions[-1][1])
        table.metadata.properties.update(json.loads(self._read(blocks[-1][1])).get("properties", {}))
        return table

    def mark_block(self, identifier: Identifier, properties: dict[str, str]) -> None:
        """Give a block properties. Do nothing if the table is not blocked."""
        last = self._list_versions(identifier)[-1][1]
        if self._is_block(last):
            self._write(last, _build_block(properties))

    def add_version(self, identifier: Identifier, metadata_location: str) -> None:
        """Put a copy of a metadata file before the block, which becomes the version after it.

        A call that was killed has left two blocks: the first of them is replaced, and the second remains.

        Raises:
            CommitFailedException: The table has no block, since another writer replaced it.
        """
        _, blocks = self._split_blocks(identifier)
        if not blocks:
            raise CommitFailedException(
                f"table {'.'.join(identifier)} was changed by another writer after it was stopped"
            )
        block = blocks[0][1]
        metadata = self._io.new_input(metadata_location)
        with (
            metadata.open() as stream,
            Compressor.get_compressor(metadata_location).stream_decompressor(stream) as text,
        ):
            document = text.read()
        self._write(self._next_version(identifier, block), self._read(block))
        self._write(block, document.decode())
        self._write_hint(identifier)

    def _load(self, path: Identifier, location: str) -> Table:
        metadata = FromInputFile.table_metadata(self._io.new_input(location))
        return Table(path, metadata, location, self._io, self)

    def _list_folders(self, parent: Identifier) -> list[str]:
        system, path = self._open_folder(parent)
        entries = system.get_file_info(FileSelector(path, allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.type is FileType.Directory)

    def _list_versions(self, identifier: Identifier) -> list[tuple[int, str]]:
        system, path = self._open_folder((*identifier, "metadata"))
        entries = system.get_file_info(FileSelector(path, allow_not_found=True))
        folder = "/".join((self._root, *identifier, "metadata"))
        matches = ((entry.base_name, _VERSION_FILE.fullmatch(entry.base_name)) for entry in entries)
        return sorted((int(match[1]), f"{folder}/{name}") for name, match in matches if match)

    def _next_version(self, identifier: Identifier, last: str) -> str:
        match = _VERSION_FILE.fullmatch(last.rpartition("/")[2])
        number = int(match[1]) if match else 0
        return "/".join((self._root, *identifier, "metadata", f"v{number + 1}.metadata.json"))

    def _create_version(self, identifier: Identifier, location: str, content: bytes) -> None:
        """Write a version that no other writer has written, also not in the same moment.

        Raises:
            CommitFailedException: Another writer has written the version.
        """
        create_file(self._io, location, content)
        versions = {path: number for number, path in self._list_versions(identifier)}
        if sum(number == versions[location] for number in versions.values()) > 1:
            self._io.delete(location)  # the version of another writer is compressed, so it has another name
            raise CommitFailedException(f"version {location} was written by another writer")

    def _split_blocks(self, identifier: Identifier) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        """Return the versions of a table, and the blocks after them, each with its number."""
        versions, blocks = self._list_versions(identifier), list[tuple[int, str]]()
        while versions and self._is_block(versions[-1][1]):
            blocks.insert(0, versions.pop())
        return versions, blocks

    def _write_hint(self, identifier: Identifier) -> None:
        """Write the number of the last version that is no block: clients fail if the hint's version is deleted."""
        versions, _ = self._split_blocks(identifier)
        self._write("/".join((self._root, *identifier, "metadata", _HINT)), str(versions[-1][0]))

    def _is_block(self, location: str) -> bool:
        return location.endswith(".metadata.json") and self._read(location)[:40].find(BLOCK) >= 0

    def _read(self, location: str) -> str:
        with self._io.new_input(location).open() as stream:
            return stream.read().decode("utf-8", errors="replace")

    def _write(self, location: str, text: str) -> None:
        with self._io.new_output(location).create(overwrite=True) as stream:
            stream.write(text.encode())

    def _open_folder(self, parts: Identifier) -> tuple[FileSystem, str]:
        scheme, netloc, path = PyArrowFileIO.parse_location("/".join((self._root, *parts)), self.properties)
        return self._io.fs_by_scheme(scheme, netloc), path


def _build_block(properties: dict[str, str]) -> str:
    return json.dumps({BLOCK: "the table is in another catalog", **({"properties": properties} if properties else {})})
