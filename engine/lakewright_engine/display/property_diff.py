"""Differences between two sets of properties, as text. Secrets are displayed as `[secret]`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from lakewright_engine.display.hidden_properties import HIDDEN_DIFF, HiddenValue
from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.paths import parse_path
from lakewright_engine.model.signatures import SECRET, SIGNATURE, UNKNOWN
from lakewright_engine.model.urns import find_package

ABSENT: Any = object()
HIDDEN_SECRET = "[secret]"  # noqa: S105 - a placeholder, not a secret
_KUBERNETES_SERVER_MANAGED = (
    "status",
    *(f"metadata.{name}" for name in ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")),
)
MAX_VALUE_LENGTH = 160
"""Characters of a value that are displayed."""


@dataclass(frozen=True)
class PropertyChange:
    """A property that differs. `sign` is `+`, `-` or `~`."""

    sign: str
    path: str
    text: str


class ValueForm(StrEnum):
    """Form in which values are written."""

    SHORT = "short"
    """On one line, and cut if they are long."""
    WHOLE = "whole"
    """In full. JSON documents in texts are compared as documents, and other texts line by line."""


def changes(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    opaque: Sequence[str] = (),
    form: ValueForm = ValueForm.SHORT,
) -> list[PropertyChange]:
    """Return the differences down to single values. Values of internal properties are left out.

    Args:
        old: The properties before.
        new: The properties after.
        opaque: Paths to leave out.
        form: How values are written.
    """
    differences = _diff_values("", dict(old), dict(new), form)
    return [change for change in differences if not any(_is_inside(change.path, path) for path in opaque)]


def diff_at_path(
    path: str,
    kind: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    form: ValueForm = ValueForm.SHORT,
) -> list[PropertyChange]:
    """Return the differences at one path of a provider's detailed diff, down to single values.

    Args:
        path: The property's path, such as `spec.containers[0].image` or `labels["a.b"]`.
        kind: The provider's kind of change: `add`, `delete` or `update`, perhaps with `-replace`.
        old: The properties before.
        new: The properties after.
        form: How values are written.
    """
    try:
        parts = parse_path(path)
    except ProgramError:
        parts = [path]
    depth = min(_find_hidden_depth(old, parts), _find_hidden_depth(new, parts))
    if depth < len(parts):  # the difference is inside a hidden value
        parts, kind = parts[:depth], "update"
    before = ABSENT if kind.startswith("add") else _get_value(old, parts)
    after = ABSENT if kind.startswith("delete") else _get_value(new, parts)
    if before is ABSENT and after is ABSENT:
        return []
    return list(_diff_values(_label(parts), before, after, form))


def server_managed_paths(type_: str) -> tuple[str, ...]:
    """Return the paths of outputs that the server of a resource type maintains."""
    return _KUBERNETES_SERVER_MANAGED if find_package(type_) == "kubernetes" else ()


def find_changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the names of the top-level properties that differ."""
    return sorted(key for key in {*old, *new} if redact_json(old.get(key, ABSENT)) != redact_json(new.get(key, ABSENT)))


def redact_json(value: Any) -> Any:
    """Return a JSON value with `[secret]` in place of secrets."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if members.get(SIGNATURE) == SECRET:
            return HIDDEN_SECRET
        return {key: redact_json(item) for key, item in members.items()}
    if isinstance(value, list):
        return [redact_json(item) for item in cast("list[Any]", value)]
    return value


def format_value(value: Any) -> str:
    """Return a value on one line, without secrets. A value not known in a preview is `[unknown]`."""
    if value == UNKNOWN:
        return "[unknown]"
    text = _dump_json(value, indent=None)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}… ({len(text)} characters)"


def _diff_values(path: str, old: Any, new: Any, form: ValueForm) -> Iterator[PropertyChange]:
    if form is ValueForm.WHOLE and isinstance(old, str) and isinstance(new, str) and old != new:
        documents = _parse_document(old), _parse_document(new)
        if all(isinstance(document, dict) for document in documents):
            yield from _diff_values(path, documents[0], documents[1], form)
            return
        if "\n" in old and "\n" in new:
            yield PropertyChange("~", path, _diff_lines(path, old, new))
            return
    if isinstance(old, dict) and isinstance(new, dict) and not (SIGNATURE in old or SIGNATURE in new):
        olds, news = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in sorted({*olds, *news}):
            inner = f"{path}.{key}" if path else key
            yield from _diff_values(inner, olds.get(key, ABSENT), news.get(key, ABSENT), form)
    elif isinstance(old, list) and isinstance(new, list):
        before, after = cast("list[Any]", old), cast("list[Any]", new)
        for index in range(max(len(before), len(after))):
            one, other = (items[index] if index < len(items) else ABSENT for items in (before, after))
            yield from _diff_values(f"{path}[{index}]", one, other, form)
    elif old is ABSENT:
        yield PropertyChange("+", path, _text(path, new, form))
    elif new is ABSENT:
        yield PropertyChange("-", path, _text(path, old, form))
    elif isinstance(old, HiddenValue) and isinstance(new, HiddenValue):
        if old != new:
            yield PropertyChange("~", path, HIDDEN_DIFF)
    elif redact_json(old) != redact_json(new):
        yield PropertyChange("~", path, f"{_text(path, old, form)} => {_text(path, new, form)}")


def _parse_document(text: str) -> Any:
    """Return the JSON object that a text is; None for other texts."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _diff_lines(path: str, old: str, new: str) -> str:
    """Return the changed lines of two texts, each on a line of its own, with two lines around them."""
    if path.startswith("__"):
        return "[internal]"
    lines = [*difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)][2:]
    # The mark keeps a line of the text from being read as a command of a CI system.
    return "\n".join(["", *(f"|{line}" for line in lines)])


def _dump_json(value: Any, indent: int | None) -> str:
    value = redact_json(value)
    text = value if value == HIDDEN_SECRET else json.dumps(value, ensure_ascii=False, default=str, indent=indent)
    text = text.replace(f'"{HIDDEN_SECRET}"', HIDDEN_SECRET).replace(f'"{UNKNOWN}"', "[unknown]")
    return text.replace(f'"{HIDDEN_DIFF}"', HIDDEN_DIFF)


def _is_inside(path: str, outer: str) -> bool:
    return path.startswith(outer) and path[len(outer) : len(outer) + 1] in ("", ".", "[")


def _get_value(value: Any, parts: Sequence[str | int]) -> Any:
    for part in parts:
        if isinstance(value, dict):
            value = cast("dict[Any, Any]", value).get(part, ABSENT)
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[part]
        else:
            return ABSENT
    return value


def _find_hidden_depth(value: Any, parts: Sequence[str | int]) -> int:
    """Return the number of parts that lead to a hidden value; that of all parts if there is none on the way."""
    for depth in range(len(parts)):
        if isinstance(_get_value(value, parts[:depth]), HiddenValue):
            return depth
    return len(parts)


def _label(parts: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def _text(path: str, value: Any, form: ValueForm) -> str:
    if path.startswith("__"):
        return "[internal]"
    if form is ValueForm.SHORT or value == UNKNOWN:
        return format_value(value)
    document = _parse_document(value) if isinstance(value, str) else None
    if document is not None:
        return _dump_json(document, indent=2)
    return _dump_json(value, indent=2 if isinstance(value, dict) and SIGNATURE not in value else None)
