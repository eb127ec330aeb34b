"""Interface of all directories: the members of a group, by name. `lakewright.errors` draws the tree of the errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from lakewright.errors import LakewrightError
from lakewright.validation.strict_model import StrictModel

MOST_PAGES = 1000
"""Pages of a list that are read at most, in case a directory repeats a page."""


class DirectoryError(LakewrightError):
    """A group cannot be read. The message contains no secret."""


class GroupNotFoundError(DirectoryError):
    """No group has that name."""


class AmbiguousGroupError(DirectoryError):
    """Several groups have that name."""


class DirectoryRefusedError(DirectoryError):
    """The client may not read groups, or its credential is not accepted."""


class DirectoryUnavailableError(DirectoryError):
    """The directory does not respond, or its response is not as expected."""


Resolve = Callable[[str], str]
"""Returns the secret behind a reference."""


@dataclass(frozen=True, order=True)
class Person:
    """A member of a group."""

    subject: str
    """Subject of the person's tokens, by which Lakekeeper knows them."""
    name: str
    """Display name."""


class GroupDirectory(Protocol):
    """A directory of people."""

    def list_members(self, group: str) -> list[Person]:
        """Return the active people in a group, sorted, without duplicates.

        Args:
            group: Name, path or id of the group.

        Raises:
            DirectoryError: The group cannot be read.
        """
        ...


class DirectoryConnection(StrictModel):
    """Settings of a directory."""

    def connect(self, resolve: Resolve) -> GroupDirectory:
        """Return the directory. It makes no call before a group is read."""
        raise NotImplementedError


def list_records(page: object) -> list[dict[str, Any]]:
    """Return the objects of a page."""
    items = cast(list[Any], page) if isinstance(page, list) else []
    return [cast(dict[str, Any], item) for item in items if isinstance(item, dict)]
