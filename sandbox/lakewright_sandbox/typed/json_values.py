"""Type guards for values of parsed JSON."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeIs

JsonObject = dict[str, Any]
JsonArray = list[Any]


def is_object(value: object) -> TypeIs[JsonObject]:
    """Return whether a value of parsed JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[JsonArray]:
    """Return whether a value of parsed JSON is an array."""
    return isinstance(value, list)
