"""Marks that declare what a field of the spec sets, and how a live value becomes a value of the field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from lakewright.errors import LakewrightError


class NotExpressibleError(LakewrightError):
    """The spec cannot express the found value. The message says why, and what to do."""


def _return_unchanged(value: Any) -> Any:
    return value


def _is_never_usual(_value: Any) -> bool:
    return False


@dataclass(frozen=True)
class Sets:
    """The field sets a property of the resource that its section declares. Several fields may set parts of one."""

    path: str
    """Path of the property, with dots: `delete_profile`, `storage.sts_session_tags`."""
    to_args: Callable[[Any], Any] = _return_unchanged
    """Converts a value of the field to the property's value; None leaves the property out."""
    from_live: Callable[[Any], Any] = _return_unchanged
    """Converts a live value of the property to a value of the field; None leaves the field out.

    Raises NotExpressibleError for a value that the field cannot express.
    """
    reads: str = ""
    """Path of the live value that `from_live` takes. Default: the property's path."""
    is_usual: Callable[[Any], bool] = _is_never_usual
    """Whether servers choose the live value themselves, so that a spec of existing objects leaves the field out."""
    refusal: str = ""
    """Why `drift --accept` does not write the field; empty if it does."""

    @property
    def live_path(self) -> str:
        """Path of the live value that the field is read from."""
        return self.reads or self.path


@dataclass(frozen=True)
class Makes:
    """The field declares resources of another kind."""

    kind: str
    """Name of the resource class: `Namespace`."""
    from_live: Callable[[Any], Any] = _return_unchanged
    """Converts the live objects to a value of the field; None leaves the field out."""


@dataclass(frozen=True)
class NoWayBack:
    """No object on a server leads to a value of the field. A field may have it and `Sets`."""

    reason: str


@dataclass(frozen=True)
class WayBack:
    """A function leads back to the field, since no single property does."""

    function: str
    """`module:function` below `lakewright`."""


T = TypeVar("T")


def list_marked_fields(model: type[BaseModel], kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield name and mark of each field of a section that carries a mark of a kind, in the section's order."""
    for name, field in model.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, kind):
                yield name, mark


def find_reason(model: type[BaseModel], name: str) -> str:
    """Return why no live value leads to a field; empty if one does."""
    return next((mark.reason for field, mark in list_marked_fields(model, NoWayBack) if field == name), "")
