"""Edit a YAML file and keep everything else, including comments and formatting."""

from __future__ import annotations

from typing import Any, cast

import yaml
from yaml import MappingNode, Node, ScalarNode

from lakewright_engine.project.yaml_text import load_yaml


def set_entry(text: str, path: list[str], value: Any) -> str:
    """Return the text with `path` (keys, outermost first) set to `value`. Comments inside a replaced value are lost."""
    wanted = _set_in_data(_loaded(text), path, value)
    return _verify_edit(_insert(text, path, value), wanted)


def remove_entry(text: str, path: list[str]) -> str:
    """Return the text without the entry at `path`, or the same text if there is none."""
    data = _loaded(text)
    if not _has(data, path):
        return text
    return _verify_edit(_delete(text, path), _remove_from_data(data, path))


class _QuotingDumper(yaml.SafeDumper):
    """Quotes text with Unicode line breaks, which escapes them. Unescaped, they would be read as spaces."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(sign in text for sign in "\x85\u2028\u2029") else None
    return cast("Any", dumper).represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _text)


def dump_yaml(data: Any) -> str:
    """Return data as YAML."""
    return yaml.dump(
        data, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=False
    )


def _verify_edit(text: str, wanted: Any) -> str:
    """Return the edited text if it has the expected data, else the data as new YAML."""
    try:
        if load_yaml(text) == wanted:
            return text
    except yaml.YAMLError:
        pass
    return dump_yaml(wanted)


def _insert(text: str, path: list[str], value: Any) -> str:
    mapping = _root(text)
    for depth, key in enumerate(path):
        if not isinstance(mapping, MappingNode) or mapping.flow_style or not mapping.value:
            return ""  # there is no block to insert into: the caller writes the whole file
        indent = mapping.value[0][0].start_mark.column
        entry = _entry(mapping, key)
        rest = path[depth + 1 :]
        if entry is None:
            return _splice(
                text, _last_line_end(text, mapping), _last_line_end(text, mapping), _block(key, rest, value, indent)
            )
        if not rest or (isinstance(entry[1], ScalarNode) and not entry[1].value):
            start = _line_start(text, entry[0])
            return _splice(text, start, _last_line_end(text, entry[1], entry[0]), _block(key, rest, value, indent))
        mapping = entry[1]
    return ""


def _delete(text: str, path: list[str]) -> str:
    mapping = _root(text)
    for depth, key in enumerate(path):
        if not isinstance(mapping, MappingNode) or mapping.flow_style:
            return ""
        entry = _entry(mapping, key)
        if entry is None:
            return ""
        if depth == len(path) - 1:
            return _splice(text, _line_start(text, entry[0]), _last_line_end(text, entry[1], entry[0]), "")
        mapping = entry[1]
    return ""


def _root(text: str) -> Node | None:
    return cast("Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]


def _loaded(text: str) -> dict[str, Any]:
    return load_yaml(text) or {}


def _entry(mapping: MappingNode, key: str) -> tuple[Node, Node] | None:
    entries = cast("list[tuple[Node, Node]]", mapping.value)
    return next((entry for entry in entries if entry[0].value == key), None)


def _block(key: str, rest: list[str], value: Any, indent: int) -> str:
    for part in reversed(rest):
        value = {part: value}
    return "".join(" " * indent + line + "\n" for line in dump_yaml({key: value}).splitlines())


def _splice(text: str, start: int, end: int, block: str) -> str:
    before = text[:start]
    if before and not before.endswith("\n"):
        before += "\n"
    return before + block + text[end:]


def _line_start(text: str, node: Node) -> int:
    return text.rfind("\n", 0, cast("Any", node).start_mark.index) + 1


def _last_line_end(text: str, node: Node, key: Node | None = None) -> int:
    """Return the end of a node's last line. The end mark of a block would include the comments after it."""
    last = node
    while not isinstance(last, ScalarNode) and last.value and not cast("Any", last).flow_style:
        last = last.value[-1][1] if isinstance(last, MappingNode) else last.value[-1]
    if isinstance(last, ScalarNode) and last.style in ("|", ">"):
        return cast("Any", last).end_mark.index
    mark = cast("Any", last).end_mark.index
    if key is not None:
        mark = max(mark, cast("Any", key).end_mark.index)
    end = text.find("\n", mark)
    return len(text) if end < 0 else end + 1


def _set_in_data(data: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    members = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return members | {path[0]: _set_in_data(members.get(path[0]), path[1:], value)}


def _remove_from_data(data: dict[str, Any], path: list[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {key: item for key, item in data.items() if key != path[0]}
    return data | {path[0]: _remove_from_data(data[path[0]], path[1:]) or None}


def _has(data: Any, path: list[str]) -> bool:
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return False
        data = cast("dict[str, Any]", data)[key]
    return True
