"""From live values of an object to the fields of a section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel

from lakewright.field_map.marks import Makes, NoWayBack, Sets, list_marked_fields


@dataclass(frozen=True)
class MarkedField:
    """The field of a section that sets a property."""

    name: str
    mark: Sets
    inner_path: tuple[str, ...] = ()
    """Path of the value within the property that the field sets."""


def read_fields(model: type[BaseModel], live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a section that declare an object as it is; only what is not a default.

    Args:
        model: The section.
        live: The object's properties by name, and the objects inside it by the name of their resource class.

    Raises:
        NotExpressibleError: The section cannot express a property.
    """
    one_way = {name for name, _ in list_marked_fields(model, NoWayBack)}
    document: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        mark = next((mark for mark in field.metadata if isinstance(mark, Sets | Makes)), None)
        if mark is None or name in one_way:
            continue
        live_value = _read_path(live, mark.kind if isinstance(mark, Makes) else mark.live_path)
        if isinstance(mark, Sets) and mark.is_usual(live_value):
            continue
        value = mark.from_live(live_value)
        if value not in (None, [], {}) and (field.is_required() or value != field.default):
            document[name] = value
    return document


def find_field(model: type[BaseModel], path: str) -> MarkedField | None:
    """Return the field that sets a property, or a part of the property; None if no field does.

    Args:
        model: The section.
        path: Path of the property, with dots.
    """
    steps = path.split(".")
    for name, mark in list_marked_fields(model, Sets):
        property_steps = mark.path.split(".")
        if steps[: len(property_steps)] == property_steps:
            return MarkedField(name, mark, tuple(steps[len(property_steps) :]))
    return None


def replace_inner_value(value: Any, path: tuple[str, ...], inner_value: Any) -> Any:
    """Return a value with another value at a path inside it."""
    if not path:
        return inner_value
    entries = _read_entries(value)
    return {**entries, path[0]: replace_inner_value(entries.get(path[0]), path[1:], inner_value)}


def _read_path(live: Mapping[str, Any], path: str) -> Any:
    value: Any = live
    for step in path.split("."):
        value = _read_entries(value).get(step)
    return value


def _read_entries(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
