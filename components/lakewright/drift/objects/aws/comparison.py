"""Decide whether live properties of an AWS object surely are as declared.

AWS and the provider take more values as equal than this comparison, which only has to be right when it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from lakewright_engine.model.errors import EngineError
from lakewright_engine.model.properties import is_equal, plaintext
from lakewright_engine.model.resources import ResourceState, Value

from lakewright.validation.documents import as_list, as_mapping


def drop_empty(value: Any) -> Any:
    """Return a value without empty parts: AWS reports absent, empty, zero and false values alike."""
    if isinstance(value, dict):
        items = {key: drop_empty(item) for key, item in cast(dict[str, Any], value).items()}
        return {key: item for key, item in items.items() if item not in (None, "", 0, [], {})}
    if isinstance(value, list):
        return [drop_empty(item) for item in cast(list[Any], value)]
    return value


def sort_rules(rules: Any) -> Any:
    """Return rules sorted by their ids, without empty parts."""
    return sorted(map(drop_empty, as_list(rules)), key=lambda rule: str(as_mapping(rule).get("id")))


@dataclass(frozen=True)
class ComparedProperty:
    """A property of a kind of object."""

    default: Any = None
    """AWS's value if nothing is declared."""
    computed: bool = False
    """Whether an undeclared value never differs."""
    stored: bool = False
    """Whether only the state has the value, as for a setting of the provider."""
    form: Callable[[Any], Any] = drop_empty
    """Converts declared and live values to comparable values."""


def is_as_declared(
    resource: ResourceState,
    properties: Mapping[str, ComparedProperty],
    live: Mapping[str, Any],
    *,
    proven: frozenset[str] = frozenset(),
) -> bool:
    """Return whether the provider surely finds no difference between live and declared properties.

    Secrets of the state are decrypted if they are compared.

    Args:
        resource: The state of the object.
        properties: The properties of its kind. A state with other properties is never surely the same.
        live: The live values by property.
        proven: Properties that are known to be as declared.
    """
    declared_inputs = {key: value for key, value in resource.inputs.items() if not key.startswith("__")}
    if declared_inputs.keys() - properties.keys():
        return False
    for name, compared in properties.items():
        if name in proven:
            continue
        declared_value = declared_inputs.get(name, compared.default)
        if declared_value is None and compared.computed:
            continue
        live_value = (
            resource.outputs.get(name, compared.default) if compared.stored else live.get(name, compared.default)
        )
        try:
            form = compared.form(plaintext(declared_value))
        except EngineError:
            return False  # the provider reports why the secret cannot be decrypted
        if not is_equal(cast(Value, compared.form(live_value)), form):
            return False
    return True


def to_tags(tags: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Return a list of tags as a program declares them."""
    return {str(tag[key]): str(tag[value]) for tag in map(as_mapping, as_list(tags))}


def to_camel_case(value: Any) -> Any:
    """Return a structure of S3 with the names of Pulumi: `Days` is `days`, and tags are a mapping."""
    if isinstance(value, list):
        return [to_camel_case(item) for item in cast(list[Any], value)]
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if not isinstance(value, dict):
        return value
    members: dict[str, Any] = {}
    for key, item in cast(dict[str, Any], value).items():
        if key == "Tags":
            members["tags"] = to_tags(item)
        else:
            members["id" if key == "ID" else key[0].lower() + key[1:]] = to_camel_case(item)
    return members
