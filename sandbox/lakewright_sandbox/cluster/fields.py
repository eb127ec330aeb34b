"""The fields of an object as paths, and sets of them as the API writes them (`fieldsV1`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from lakewright_sandbox.cluster.schema import DEFAULTS, Path, is_atomic, is_set, list_keys

Json = dict[str, Any]
PRESENT = object()
"""Value of a list item that has fields of its own."""

_NEVER_OWNED = (
    ("f:apiVersion",),
    ("f:kind",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "creationTimestamp",
            "deletionTimestamp",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "uid",
        )
    ),
)


def values_by_path(manifest: Json) -> dict[Path, Any]:
    """Return the value at each path that can be owned."""
    values: dict[Path, Any] = {}
    _collect(manifest, (), values)
    return {path: value for path, value in values.items() if path and path[:2] not in _NEVER_OWNED}


def _collect(value: Any, path: Path, values: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and not is_atomic(path):
        for key, item in cast(Json, value).items():
            _collect(item, (*path, f"f:{key}"), values)
        return
    items = cast(list[Any], value) if isinstance(value, list) else []
    if items and list_keys(path):
        for item in items:
            inner = (*path, item_part(path, item))
            values[inner] = PRESENT
            _collect(item, inner, values)
    elif items and is_set(path):
        values |= {(*path, f"v:{_compact(item)}"): item for item in items}
    elif value is not None:
        values[path] = value


def item_part(path: Path, item: Json) -> str:
    """Return the part of a path that names an item of a list with keys."""
    keys = list_keys(path) or ()
    return f"k:{_compact({key: item.get(key, DEFAULTS.get(key)) for key in keys})}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def path_text(path: Path) -> str:
    """Return a path as the API's messages write it: `.spec.containers[name="a"].image`."""
    text = ""
    for part in path:
        kind, _, name = part.partition(":")
        if kind == "f":
            text += f".{name}"
        elif kind == "k":
            text += "[" + ",".join(f"{key}={_compact(value)}" for key, value in json.loads(name).items()) + "]"
        else:
            text += f"[={name}]"
    return text


def encode(paths: Iterable[Path]) -> Json:
    """Return paths as `fieldsV1`."""
    tree: Json = {}
    for path in sorted(paths):
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        if path[-1].startswith("k:"):
            node["."] = {}
    return tree


def decode(tree: Json, path: Path = ()) -> set[Path]:
    """Return the paths in a `fieldsV1`."""
    if not tree:
        return {path}
    paths: set[Path] = set()
    for part, inner in tree.items():
        paths |= {path} if part == "." else decode(inner, (*path, part))
    return paths
