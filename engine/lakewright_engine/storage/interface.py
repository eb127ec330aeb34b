"""The interface of a storage: objects by key, such as `stacks/PROJECT/STACK.json`, below the backend's `.pulumi`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

ABSENT = ""
"""The version of an object that does not exist."""


@dataclass(frozen=True)
class StoredObject:
    """The content of an object and its version."""

    content: bytes
    version: str | None
    """None if the storage has no versions."""


@dataclass(frozen=True)
class ObjectEntry:
    """An object in a listing."""

    key: str
    modified: float
    """Seconds since 1970."""
    version: str | None = None
    """None if the storage has no versions."""


class Storage(Protocol):
    """Keeps the objects of a backend. Each write replaces a whole object or fails and changes nothing.

    All methods raise `StateAccessError` if the storage cannot be used, with the action and the place.
    """

    @property
    def url(self) -> str:
        """The URL for the Pulumi CLI, without relative paths."""
        ...

    def describe(self, key: str = "") -> str:
        """Return the path or URL of an object for messages, by default of all objects."""
        ...

    def read(self, key: str) -> StoredObject | None:
        """Return an object; None if it does not exist."""
        ...

    def write(self, key: str, content: bytes, expected: str | None = None) -> str | None:
        """Write an object. Return its new version.

        Args:
            key: The object's key.
            content: The new content.
            expected: The version to replace, `ABSENT` for a new object, or None to replace any. A storage without
                versions ignores it.

        Raises:
            StateConflictError: The object has another version.
        """
        ...

    def keep_copy(self, key: str, copy: str) -> None:
        """Copy an object, which exists."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, if they exist."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Delete all objects whose keys start with `folder/`."""
        ...

    def entries(self, keys: Iterable[str]) -> Mapping[str, ObjectEntry]:
        """Return the entries of existing keys. All keys start with the first key."""
        ...

    def list_folder(self, folder: str) -> list[ObjectEntry]:
        """Return all objects whose keys start with `folder/`, sorted by key."""
        ...

    def prepare(self) -> None:
        """Prepare for changes by this user."""
        ...

    def remove_leftovers(self, folder: str, names: str) -> None:
        """Remove incomplete writes of killed processes.

        Args:
            folder: The folder of the objects.
            names: A regular expression that matches their names.
        """
        ...
