"""A folder as storage of a backend. Every write is atomic and durable: a synced temporary file is renamed."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lakewright_engine.model.errors import StateAccessError
from lakewright_engine.storage import files
from lakewright_engine.storage.interface import ObjectEntry, StoredObject


class FolderStorage:
    """The files below `.pulumi` in a folder."""

    def __init__(self, url: str) -> None:
        """Use the folder of a `file://` URL. Relative paths start at the working directory, `~` is the home folder."""
        path = Path(url.removeprefix("file://").split("?")[0])
        self._folder = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - Path.resolve follows links
        self.root = self._folder / ".pulumi"

    @property
    def url(self) -> str:
        """The URL for the Pulumi CLI, with an absolute path."""
        return f"file://{self._folder}"

    def describe(self, key: str = "") -> str:
        """Return the path of a file."""
        return str(self.root / key)

    def read(self, key: str) -> StoredObject | None:
        """Return the content of a file; None if there is none."""
        try:
            return StoredObject((self.root / key).read_bytes(), None)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StateAccessError(f"{self.describe(key)} cannot be read: {error.strerror or error}") from error

    def write(self, key: str, content: bytes, expected: str | None = None) -> str | None:  # noqa: ARG002 - no versions
        """Write a file atomically and sync it to the disk."""
        file = self.root / key
        with _explain_errors():
            files.write(file, content)
            # The CLI stores an MD5 in a side file. A wrong MD5 is worse than none.
            _find_attributes(file).unlink(missing_ok=True)
        return None

    def keep_copy(self, key: str, copy: str) -> None:
        """Keep a file's content under another name in the same folder."""
        with _explain_errors():
            files.keep_copy(self.root / key, self.root / copy)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files and the side files of the CLI, if they exist."""
        for file in (self.root / key for key in keys):
            with _explain_errors():
                file.unlink(missing_ok=True)
                _find_attributes(file).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder, if it exists."""
        with _explain_errors():
            files.remove_tree(self.root / folder)

    def entries(self, keys: Iterable[str]) -> Mapping[str, ObjectEntry]:
        """Return the entries of existing files."""
        return {entry.key: entry for key in keys for entry in _entry(self.root, self.root / key)}

    def list_folder(self, folder: str) -> list[ObjectEntry]:
        """Return the files in a folder and below it, sorted by path."""
        return [entry for file in sorted((self.root / folder).rglob("*")) for entry in _entry(self.root, file)]

    def prepare(self) -> None:
        """Remove the permissions of other users."""
        files.close_to_others(self.root)

    def remove_leftovers(self, folder: str, names: str) -> None:
        """Remove partial files of killed processes."""
        files.remove_leftovers(self.root / folder, names)


@contextmanager
def _explain_errors() -> Generator[None]:
    """Turn errors of the file system into StateAccessError."""
    try:
        yield
    except OSError as error:
        raise StateAccessError(error.strerror or str(error)) from error


def _entry(root: Path, file: Path) -> Iterator[ObjectEntry]:
    with suppress(FileNotFoundError, NotADirectoryError):
        if file.is_file():
            yield ObjectEntry(file.relative_to(root).as_posix(), file.stat().st_mtime)


def _find_attributes(file: Path) -> Path:
    return file.with_name(f"{file.name}.attrs")
