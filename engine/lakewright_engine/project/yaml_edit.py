"""Edit a YAML file and keep everything else, including comments and formatting.

A path has keys of mappings and indexes of sequences, the outermost first. Only the text of what changes is replaced, in
block and in flow style. Each edit is checked: the new text must have the expected data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from lakewright_engine.model.errors import EngineError
from lakewright_engine.project.yaml_text import GoSafeDumper, load_yaml

YamlPath = Sequence[str | int]


class YamlEditError(EngineError):
    """A file cannot be edited in place, for example because the place uses an alias."""


def set_entry(text: str, path: YamlPath, value: Any) -> str:
    """Return the text with `path` set to `value`, as new YAML if it cannot be edited in place.

    Comments inside a replaced value are lost.
    """
    try:
        return edit_entry(text, path, value)
    except YamlEditError:
        return dump_yaml(_set_in_data(_load(text), path, value))


def remove_entry(text: str, path: YamlPath) -> str:
    """Return the text without the entry at `path`, or the same text if there is none."""
    data = _load(text)
    if not _has(data, path):
        return text
    try:
        return delete_entry(text, path)
    except YamlEditError:
        return dump_yaml(_remove_from_data(data, path))


def edit_entry(text: str, path: YamlPath, value: Any) -> str:
    """Return the text with `path` set to `value`. Make missing mappings.

    An index after the last item appends an item.

    Raises:
        YamlEditError: The text cannot be edited in place.
    """
    return _verify(_Text(text).set(path, value), _set_in_data(_load(text), path, value), path)


def delete_entry(text: str, path: YamlPath) -> str:
    """Return the text without the entry at `path`. A parent without any other entry becomes empty.

    Raises:
        YamlEditError: The text cannot be edited in place, or there is no such entry.
    """
    data = _load(text)
    if not _has(data, path):
        raise YamlEditError(f"there is no entry {_format_path(path)}")
    return _verify(_Text(text).remove(path), _remove_from_data(data, path), path)


def dump_yaml(data: Any) -> str:
    """Return data as YAML."""
    return _dump(data, flow=False)


def _dump(data: Any, *, flow: bool) -> str:
    return yaml.dump(
        data, Dumper=GoSafeDumper, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=flow
    )


def _flow(value: Any) -> str:
    """Return a value in flow style, on one line."""
    return _dump([value], flow=True).strip()[1:-1]


@dataclass(frozen=True)
class _Entry:
    """An entry of a collection."""

    node: Node
    key: Node | None
    """None in a sequence."""
    index: int


class _Text:
    """The text of a document, and its nodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = cast("Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]

    def set(self, path: YamlPath, value: Any) -> str:
        parent = self._root
        for depth, step in enumerate(path):
            entry = _entry(parent, step)
            later_steps = path[depth + 1 :]
            if entry is None:
                return self._insert(parent, step, _nest(later_steps, value))
            if not later_steps or (isinstance(entry.node, ScalarNode) and not entry.node.value):
                return self._replace(parent, entry, _nest(later_steps, value))
            parent = entry.node
        return ""

    def remove(self, path: YamlPath) -> str:
        parent = self._root
        for step in path[:-1]:
            entry = _entry(parent, step)
            parent = entry.node if entry else None
        entry = _entry(parent, path[-1])
        if parent is None or entry is None:
            return ""
        siblings = _entries(parent)
        if len(siblings) == 1:
            return self._empty(parent, path)
        if _is_flow(parent):
            if entry.index:
                return self._splice(_end(siblings[entry.index - 1].node), _end(entry.node), "")
            return self._splice(_start(entry.key or entry.node), _start(siblings[1].key or siblings[1].node), "")
        first = entry.key or entry.node
        if entry.key is not None and self._is_after_dash(first):
            # The next entry follows the dash of the sequence's item.
            return self._splice(_start(first), _start(siblings[1].key or siblings[1].node), "")
        return self._splice(self._line_start(_start(first)), self._last_line_end(entry.node, entry.key), "")

    def _insert(self, parent: Node | None, step: str | int, value: Any) -> str:
        siblings = _entries(parent)
        if parent is None or (isinstance(step, int) and step != len(siblings)):
            return ""
        item = f"{_flow(step)}: {_flow(value)}" if isinstance(parent, MappingNode) else _flow(value)
        if _is_flow(parent):
            at = _end(siblings[-1].node) if siblings else _start(parent) + 1
            return self._splice(at, at, f", {item}" if siblings else item)
        if not siblings:
            return ""
        last = siblings[-1]
        at = self._last_line_end(last.node, last.key)
        if isinstance(parent, MappingNode):
            lines = dump_yaml({step: value}).splitlines()
            return self._splice_lines(at, at, lines, _column(siblings[0].key or last.node))
        lines = [f"- {item}"] if _is_flow(last.node) else dump_yaml([value]).splitlines()
        return self._splice_lines(at, at, lines, self._dash_column(siblings[0].node))

    def _replace(self, parent: Node | None, entry: _Entry, value: Any) -> str:
        node = entry.node
        is_line = _is_flow(node) or (isinstance(node, ScalarNode) and node.style not in ("|", ">"))
        is_block_value = isinstance(value, dict | list) and bool(cast("Any", value))
        if is_line and _start(node) == _end(node):  # `key:` without a value
            at = self._text.find(":", _end(entry.key)) + 1 if entry.key else _end(node)
            return self._splice(at, _end(node), f" {_flow(value)}")
        if is_line and (not is_block_value or _is_flow(node) or _is_flow(parent)):
            return self._splice(_start(node), _end(node), _flow(value))
        end = self._last_line_end(node, entry.key)
        if entry.key is not None:
            start = self._line_start(_start(entry.key))
            if self._is_after_dash(entry.key):
                return ""
            lines = dump_yaml({cast("Any", entry.key).value: value}).splitlines()
            return self._splice_lines(start, end, lines, _column(entry.key))
        start = self._line_start(_start(node))
        return self._splice_lines(start, end, dump_yaml([value]).splitlines(), self._dash_column(node))

    def _empty(self, parent: Node, path: YamlPath) -> str:
        """Return the text with the only entry of a collection removed."""
        brackets = "{}" if isinstance(parent, MappingNode) else "[]"
        if _is_flow(parent):
            return self._splice(_start(parent), _end(parent), brackets)
        if len(path) < 2:
            return ""
        above = self._root
        for step in path[:-2]:
            parent_entry = _entry(above, step)
            above = parent_entry.node if parent_entry else None
        entry = _entry(above, path[-2])
        if entry is None or entry.key is None:
            return ""
        colon = self._text.find(":", _end(entry.key)) + 1
        return self._splice(colon, self._last_line_end(parent), f" {brackets}\n")

    def _is_after_dash(self, node: Node) -> bool:
        return self._text[self._line_start(_start(node)) : _start(node)].strip() != ""

    def _dash_column(self, item: Node) -> int:
        at = self._text.rfind("-", 0, _start(item))
        return at - self._line_start(at)

    def _splice_lines(self, start: int, end: int, lines: list[str], indent: int) -> str:
        return self._splice(start, end, "".join(f"{' ' * indent}{line}\n" for line in lines), own_line=True)

    def _splice(self, start: int, end: int, new: str, *, own_line: bool = False) -> str:
        before = self._text[:start]
        if own_line and before and not before.endswith("\n"):
            before += "\n"
        return before + new + self._text[end:]

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _last_line_end(self, node: Node, key: Node | None = None) -> int:
        """Return the end of a node's last line. The end mark of a block would include the comments after it."""
        last = node
        while not isinstance(last, ScalarNode) and last.value and not _is_flow(last):
            last = last.value[-1][1] if isinstance(last, MappingNode) else last.value[-1]
        if isinstance(last, ScalarNode) and last.style in ("|", ">"):
            return _end(last)
        mark = max(_end(last), _end(key) if key is not None else 0)
        end = self._text.find("\n", mark)
        return len(self._text) if end < 0 else end + 1


def _entries(parent: Node | None) -> list[_Entry]:
    if isinstance(parent, MappingNode):
        pairs = cast("list[tuple[Node, Node]]", parent.value)
        return [_Entry(node, key, index) for index, (key, node) in enumerate(pairs)]
    if isinstance(parent, SequenceNode):
        items = cast("list[Node]", parent.value)
        return [_Entry(node, None, index) for index, node in enumerate(items)]
    return []


def _entry(parent: Node | None, step: str | int) -> _Entry | None:
    entries = _entries(parent)
    if isinstance(parent, SequenceNode):
        return entries[step] if isinstance(step, int) and 0 <= step < len(entries) else None
    return next((entry for entry in entries if entry.key is not None and entry.key.value == step), None)


def _is_flow(node: Node | None) -> bool:
    return isinstance(node, MappingNode | SequenceNode) and bool(cast("Any", node).flow_style)


def _start(node: Node) -> int:
    return cast("Any", node).start_mark.index


def _end(node: Node) -> int:
    return cast("Any", node).end_mark.index


def _column(node: Node) -> int:
    return cast("Any", node).start_mark.column


def _nest(path: YamlPath, value: Any) -> Any:
    for step in reversed(path):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _load(text: str) -> dict[str, Any]:
    return load_yaml(text) or {}


def _verify(text: str, expected: Any, path: YamlPath) -> str:
    """Return the edited text if it has the expected data."""
    try:
        if text and load_yaml(text) == expected:
            return text
    except yaml.YAMLError:
        pass
    raise YamlEditError(f"{_format_path(path)} cannot be edited in place; change it by hand")


def _format_path(path: YamlPath) -> str:
    return ".".join(str(step) for step in path)


def _set_in_data(data: Any, path: YamlPath, value: Any) -> Any:
    if not path:
        return value
    step = path[0]
    if isinstance(step, int):
        items = cast("list[Any]", data) if isinstance(data, list) else []
        old = items[step] if step < len(items) else None
        return [*items[:step], _set_in_data(old, path[1:], value), *items[step + 1 :]]
    members = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return members | {step: _set_in_data(members.get(step), path[1:], value)}


def _remove_from_data(data: Any, path: YamlPath) -> Any:
    step, later_steps = path[0], path[1:]
    if isinstance(step, int):
        items = cast("list[Any]", data)
        remaining_items = [_remove_from_data(items[step], later_steps)] if later_steps else []
        return [*items[:step], *remaining_items, *items[step + 1 :]]
    members = cast("dict[str, Any]", data)
    if not later_steps:
        return {key: item for key, item in members.items() if key != step}
    return members | {step: _remove_from_data(members[step], later_steps)}


def _has(data: Any, path: YamlPath) -> bool:
    for step in path:
        if isinstance(data, dict) and step in data:
            data = cast("dict[Any, Any]", data)[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(cast("list[Any]", data)):
            data = cast("list[Any]", data)[step]
        else:
            return False
    return True
