"""The field managers of Kubernetes: each live object records who set which field, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from lakewright_engine.model.paths import parse_path
from lakewright_engine.steps.object_read import ObjectRead

from lakewright.drift.actors.source import is_since
from lakewright.drift.model import Actor
from lakewright.drift.session import StackResource
from lakewright.validation.documents import as_list, as_mapping

SOURCE = "managed fields"
_OWN = "pulumi-kubernetes"
"""Start of the names of the plugin's field managers."""


def actor_of_field(resource: StackResource, read: ObjectRead, path: str) -> Actor | None:
    """Return the field manager that changed a field after the stack's last update; None if that is not recorded.

    A removed field has no manager, so its removal has no actor.
    """
    if read.new is None:
        return None
    live = read.new.outputs
    parts = parse_path(path)
    own_manager = resource.state.outputs.get("__fieldManager")
    managers = [
        entry
        for entry in map(as_mapping, as_list(as_mapping(live.get("metadata")).get("managedFields")))
        if _owns(as_mapping(entry.get("fieldsV1")), live, parts)
    ]
    other_managers = [
        entry for entry in managers if entry.get("manager") != own_manager and not _is_own(entry.get("manager"))
    ]
    if len(other_managers) != 1 or len(managers) != 1:
        return None
    name, at = str(other_managers[0].get("manager") or ""), str(other_managers[0].get("time") or "")
    # The fields of the last update belong to the stack's manager, so another manager has set this field later.
    return Actor(name, at, SOURCE) if name and is_since(at, resource.updated) else None


def _is_own(manager: object) -> bool:
    return isinstance(manager, str) and manager.startswith(_OWN)


def _owns(fields: Mapping[str, Any], live: Any, parts: list[str | int]) -> bool:
    """Return whether a set of fields contains the field at a path, or a value around it as a whole."""
    if not parts:
        return not fields
    part, remaining_parts = parts[0], parts[1:]
    if not fields:
        return True
    value = _member(live, part)
    names = [f"f:{part}"] if isinstance(part, str) else [*_item_names(fields, value)]
    return any(name in fields and _owns(as_mapping(fields[name]), value, remaining_parts) for name in names)


def _item_names(fields: Mapping[str, Any], item: Any) -> Iterator[str]:
    """Yield the names in a set of fields of an item of a list: by its keys, or by its value."""
    for name in fields:
        kind, _, text = name.partition(":")
        if kind not in ("k", "v"):
            continue
        try:
            key_fields = json.loads(text)
        except ValueError:
            continue
        keys = as_mapping(key_fields)
        is_item = as_mapping(item) and keys and all(as_mapping(item).get(key) == value for key, value in keys.items())
        if is_item or (kind == "v" and key_fields == item):
            yield name


def _member(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return cast(dict[object, Any], value).get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(cast(list[Any], value)):
        return cast(list[Any], value)[part]
    return None
