"""Property paths, `spec.containers[0].image` or `labels["a.b"]` or `*`: for ignoreChanges and replaceOnChanges."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, cast

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.resources import Properties, SecretValue, Value

Path = list[str | int]
_ABSENT = object()
_PART = re.compile(r"""\.?(?:\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|\[\*\]|([^.\["]+))""")


def parse_path(text: str) -> Path:
    """Return the parts of a property path. Raise ProgramError if the text is not a path."""
    path: Path = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise ProgramError(f"{text!r} is not a property path: expected something like 'spec.containers[0].image'")
        quoted, index, name = match.groups()
        if quoted is not None:
            path.append(quoted.replace('\\"', '"'))
        elif index is not None:
            path.append(int(index))
        else:
            path.append(name or "*")
        position = match.end()
    return path


def contains(path: Path, other: Path) -> bool:
    """Return whether `other` is `path` or is inside it."""
    return len(path) <= len(other) and all(part in ("*", other[i]) for i, part in enumerate(path))


def apply_ignore_changes(inputs: Properties, old_inputs: Properties, paths: list[str]) -> Properties:
    """Return the inputs with the old values at the ignored paths.

    An old value that was secret, or was inside a secret, remains secret.
    """
    if not paths:
        return inputs
    result = copy.deepcopy(inputs)
    for text in paths:
        for path in _expand(parse_path(text), [result, old_inputs]):
            _reset(result, path, _get(old_inputs, path))
    return result


def _expand(path: Path, values: list[Any]) -> Iterator[Path]:
    if not path:
        yield []
        return
    head, tail_path = path[0], path[1:]
    heads = [head] if head != "*" else sorted({key for value in values for key in _keys(value)}, key=str)
    for part in heads:
        inner = [_get(value, [part]) for value in values]
        for tail in _expand(tail_path, [value for value in inner if value is not _ABSENT]):
            yield [part, *tail]


def _keys(value: Any) -> list[str | int]:
    value = _open(value)
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value))
    return list(range(len(cast("list[Any]", value)))) if isinstance(value, list) else []


def _open(value: Any) -> Any:
    return value.value if isinstance(value, SecretValue) else value


def _get(value: Any, path: Path) -> Any:
    """Return the value at a path. A value inside a secret is a secret."""
    is_secret = False
    for part in path:
        is_secret = is_secret or isinstance(value, SecretValue)
        value = _open(value)
        if isinstance(value, dict) and part in value:
            value = cast("dict[Any, Any]", value)[part]
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[part]
        else:
            return _ABSENT
    return SecretValue(value) if is_secret and not isinstance(value, SecretValue) else value


def _reset(target: Properties, path: Path, old: Value | object) -> None:
    parent = _get(target, path[:-1])
    if isinstance(parent, SecretValue):
        parent, old = _open(parent), _open(old)  # the whole parent is encrypted
    last = path[-1]
    if isinstance(parent, dict):
        holder = cast("dict[Any, Any]", parent)
        if old is _ABSENT:
            holder.pop(last, None)
        else:
            holder[last] = old
    elif (
        isinstance(parent, list)
        and isinstance(last, int)
        and old is not _ABSENT
        and last < len(cast("list[Any]", parent))
    ):
        cast("list[Any]", parent)[last] = old
