"""Formats docs/reference/json.md from outputs that tests/integration/test_documented_commands.py records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "json.md"
INTRODUCTION = """\
# Which JSON do commands print?

<!-- Recorded: `LAKEWRIGHT_RECORD=1 pytest tests/integration/test_documented_commands.py -k json`. -->

With `--json`, a command prints one document on standard output and nothing else there. Keys are in snake case.
`version` is that of the document's shape. Later versions add keys; the changelog names each key that is removed or
changes its meaning. Failures are documents, too: `preview`, `up`, `refresh` and `destroy` add `messages`. The
[exit code](exit-codes.md) is the same without `--json`.

The shapes below are recorded from a tenant in the sandbox. A list has the shape of its entries, `NAME` stands for any
key of a map, and a field that may be absent from an entry ends in `?`.
"""
MAPS = {"changes", "config", "days", "environment", "labels", "outputs", "resource_changes", "s3"}
"""Fields whose keys are data."""
WORDS = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "text"}


def describe_shape(value: Any) -> Any:
    """Return a value with the names of types in place of its scalars."""
    if isinstance(value, list):
        shapes = [describe_shape(entry) for entry in value]
        return [merge_shapes(shapes)] if shapes else []
    if isinstance(value, dict):
        return {
            name: _describe_map(entry) if name in MAPS and isinstance(entry, dict) else describe_shape(entry)
            for name, entry in value.items()
        }
    return WORDS[type(value)]


def _describe_map(entries: Mapping[str, Any]) -> Any:
    shapes = [describe_shape(entry) for entry in entries.values()]
    return {"NAME": merge_shapes(shapes)} if shapes else {}


def merge_shapes(shapes: list[Any]) -> Any:
    """Return one shape for the entries of a list."""
    if all(isinstance(shape, dict) for shape in shapes):
        names = dict.fromkeys(name for shape in shapes for name in shape)
        return {
            name if all(name in shape for shape in shapes) else f"{name}?": merge_shapes(
                [shape[name] for shape in shapes if name in shape]
            )
            for name in names
        }
    if all(isinstance(shape, list) for shape in shapes):
        inner = [entry for shape in shapes for entry in shape]
        return [merge_shapes(inner)] if inner else []
    unique = {json.dumps(shape): shape for shape in shapes}
    if len(unique) == 1:
        return shapes[0]
    kinds = {list: "list", dict: "object"}
    return " or ".join(sorted({kinds.get(type(shape)) or shape for shape in shapes}))


def format_page(outputs: Mapping[str, Any]) -> str:
    """Return the page for documents by command."""
    sections = [
        f"## `{command}`\n\n```json\n{json.dumps(describe_shape(document), indent=2)}\n```\n"
        for command, document in outputs.items()
    ]
    return "\n".join([INTRODUCTION, *sections])
