"""Read parts of a document that may have any shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a value that is a mapping, else an empty mapping."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Any]:
    """Return a value that is a list, else an empty list."""
    return cast(list[Any], value) if isinstance(value, list) else []


def as_text(value: object) -> str | None:
    """Return a value that is text, else None."""
    return value if isinstance(value, str) else None


def list_items(document: Mapping[str, Any], section: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the entries of a list that are mappings, with their positions."""
    return [
        (index, as_mapping(item))
        for index, item in enumerate(as_list(document.get(section)))
        if as_mapping(item) is item
    ]


def join_names(names: Iterable[str]) -> str:
    """Return names with commas between them, or `none`."""
    return ", ".join(names) or "none"


def list_names(document: Mapping[str, Any], section: str) -> list[str]:
    """Return the names of the entries of a list, without names that are not text."""
    return [name for _, item in list_items(document, section) if (name := as_text(item.get("name")))]
