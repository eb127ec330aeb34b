"""Edits of a stack file by path: only the text of changed entries is replaced."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from lakewright_engine.project.yaml_edit import YamlEditError, delete_entry, dump_yaml, edit_entry

SPEC = """\
# Head
config:
  tenant:
    owner: you    # who
    storage: {main: {backend: aws, bucket: b}}  # one line

    warehouses:
      # the first
      - name: executions   # bound
        soft_delete_days: 7     # a week
        namespaces: [results, "a b"]
      - {name: second, protected: true}
    grants:
      - to: role:a
        on: {warehouse: executions}

      # about b
      - to: role:b
        on:
          warehouse: second
    labels: {}
    empty:
# Tail
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (["warehouses", 0, "soft_delete_days"], 14, "soft_delete_days: 7     #", "soft_delete_days: 14     #"),
        (["warehouses", 1, "protected"], False, "protected: true}", "protected: false}"),
        (["warehouses", 1, "soft_delete_days"], 3, "protected: true}", "protected: true, soft_delete_days: 3}"),
        (["warehouses", 0, "namespaces", 2], "x, y", '"a b"]', "\"a b\", 'x, y']"),
        (["labels", "team"], "a", "labels: {}", "labels: {team: a}"),
        (["empty"], [1], "empty:\n", "empty: [1]\n"),
        (["empty", "deep", "er"], 1, "empty:\n", "empty: {deep: {er: 1}}\n"),
        (
            ["warehouses", 0, "protected"],
            True,
            'namespaces: [results, "a b"]\n',
            'namespaces: [results, "a b"]\n        protected: true\n',
        ),
        (["grants", 2], {"to": "c"}, "warehouse: second\n", "warehouse: second\n      - to: c\n"),
        (["warehouses", 2], {"name": "c"}, "protected: true}\n", "protected: true}\n      - {name: c}\n"),
        (["storage", "main", "bucket"], "c", "bucket: b}", "bucket: c}"),
    ],
)
def test_set(path: list[str | int], value: Any, old: str, new: str) -> None:
    assert edit_entry(SPEC, ["config", "tenant", *path], value) == SPEC.replace(old, new)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (["warehouses", 0, "soft_delete_days"], "        soft_delete_days: 7     # a week\n", ""),
        (["warehouses", 1, "protected"], ", protected: true", ""),
        (["warehouses", 1, "name"], "name: second, ", ""),
        (["warehouses", 1], "      - {name: second, protected: true}\n", ""),
        (["warehouses", 0, "namespaces", 0], "results, ", ""),
        (["storage", "main"], "{main: {backend: aws, bucket: b}}", "{}"),
        (["grants", 0, "to"], "to: role:a\n        on", "on"),
        (["grants", 1, "on", "warehouse"], "on:\n          warehouse: second\n", "on: {}\n"),
        (["grants", 1], "      - to: role:b\n        on:\n          warehouse: second\n", ""),
    ],
)
def test_remove(path: list[str | int], old: str, new: str) -> None:
    assert delete_entry(SPEC, ["config", "tenant", *path]) == SPEC.replace(old, new)


def test_aliases_are_refused() -> None:
    text = "a: &shared {x: 1}\nb: *shared\n"

    with pytest.raises(YamlEditError, match="by hand"):
        edit_entry(text, ["b", "x"], 2)


def test_missing_entry_is_refused() -> None:
    with pytest.raises(YamlEditError, match="no entry"):
        delete_entry(SPEC, ["config", "tenant", "quota"])


KEYS = st.text("abc-_#:, ", min_size=1, max_size=4)
LEAVES = st.integers(-9, 99) | st.booleans() | st.text("ab:#-{}[],'\"\n ", max_size=6) | st.none()
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


def paths(data: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path for key, item in items for path in ((*at, key), *paths(item, (*at, key)))]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=3), st.data(), TREES, st.sampled_from([True, False, None]))
def test_any_edit_has_the_expected_data_or_is_refused(
    tree: dict[str, Any],
    data: st.DataObject,
    value: Any,
    flow: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    """An edit changes the chosen entry alone, or refuses; the checks inside must never let another result through."""
    text = yaml.safe_dump(tree, default_flow_style=flow, sort_keys=False)
    path = data.draw(st.sampled_from(paths(tree)))
    try:
        edited = edit_entry(text, path, value)
    except YamlEditError:
        return
    other_entries = {other: _look_up(tree, other) for other in paths(tree) if other[: len(path)] != path[: len(other)]}
    edited_tree = yaml.safe_load(edited)
    assert _look_up(edited_tree, path) == value
    assert {other: _look_up(edited_tree, other) for other in other_entries} == other_entries


def _look_up(data: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


def test_new_yaml_reads_back() -> None:
    assert yaml.safe_load(dump_yaml({"a": ["x\u2028y", "on"]})) == {"a": ["x\u2028y", "on"]}


# `resolve` of gopkg.in/yaml.v2 2.4.0 and yaml.v3 3.0.1, for unquoted text.
GO_WORDS = "y Y yes Yes YES true True TRUE on On ON n N no No NO false False FALSE off Off OFF ~ null Null NULL << "
GO_WORDS += ".nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF"
GO_VALUES = "1e3 0o17 .5e3 1_000 0b-1 0B1 0XfF +12 1. 2026-1-2 2026-1-2T3:4:5Z y N on null 1:30 0777 ~ <<"
GO_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
GO_TIME = r"\d\d?:\d\d?:\d\d?([.,]\d+)?"
GO_DATE = re.compile(rf"\d{{4}}-\d\d?-\d\d?([Tt]{GO_TIME}(Z|[-+]\d\d:\d\d)| {GO_TIME})?", re.ASCII)
GO_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)|-?0b[-+]?[01]+|-?0o[-+]?[0-7]+")


def is_text_for_go(text: str) -> bool:
    """Return whether Go's YAML reads unquoted text as text."""
    if text in {"", *GO_WORDS.split()}:
        return False
    if text.startswith("."):
        return not GO_FLOAT.fullmatch(text.replace("_", ""))
    if not text.startswith(("+", "-", *"0123456789")):
        return True
    if GO_DATE.fullmatch(text):
        return False
    plain = text.replace("_", "")
    return not (GO_INT.fullmatch(plain) or GO_FLOAT.fullmatch(plain))


def dump_unquoted(text: str) -> str | None:
    """Return the text of a written value as it is without quotes; None if it has some."""
    written = dump_yaml({"k": text}).removeprefix("k:").strip()
    return None if written.startswith(("'", '"')) else written


@pytest.mark.parametrize("text", GO_VALUES.split())
def test_values_of_go_are_written_with_quotes(text: str) -> None:
    assert dump_unquoted(text) is None
    assert yaml.safe_load(dump_yaml({"k": text, text: 1})) == {"k": text, text: 1}


@pytest.mark.parametrize("text", ["v1.2", "1.2.3", "10.0.0.0/8", "2026-11", "7d", "e5", "yes-no", "0x", "a_1"])
def test_plain_text_is_written_without_quotes(text: str) -> None:
    assert dump_unquoted(text) == text


@given(
    st.text(alphabet="0123456789_.-+eEoOxXbBaFnNyYTtZ: ~,", max_size=12)
    | st.from_regex(GO_FLOAT, fullmatch=True)
    | st.from_regex(GO_DATE, fullmatch=True)
    | st.from_regex(GO_INT, fullmatch=True)
    | st.sampled_from(GO_WORDS.split())
)
@settings(max_examples=500, deadline=None)
def test_text_is_text_for_go_and_for_pyyaml(text: str) -> None:
    plain = dump_unquoted(text)

    assert plain is None or is_text_for_go(plain)
    assert yaml.safe_load(dump_yaml({"k": [text]})) == {"k": [text]}
