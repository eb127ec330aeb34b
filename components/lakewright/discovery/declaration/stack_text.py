"""The text of a stack file as a person writes it: short entries on one line, comments where a decision is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml
from lakewright_engine.project.yaml_text import GoSafeDumper

from lakewright.discovery.declaration.tenant_spec import TenantDraft
from lakewright.terminal.escaping import escape_line, escape_text

_WIDTH = 118
_OPENING = ("name", "owner", "adopt")
_COMMENTS = {
    "adopt": "Remove it after the first `lakewright up`, which takes everything over.",
}


def stack_text(draft: TenantDraft, origin: str, schema_comment: str = "") -> str:
    """Return the text of `Pulumi.<stack>.yaml`.

    Args:
        draft: The spec.
        origin: Where it was read, for a comment.
        schema_comment: First line, which names the schema for editors.
    """
    lines = [
        f"# Written by `lakewright spec from-server` from {escape_line(origin)}.",
        "config:",
        "  lakewright:tenant:",
    ]
    for section, value in draft.spec.items():
        text = _section(section, value, draft.comments)
        if isinstance(value, dict | list):
            lines.append("")
        lines += [f"    {line}" if line else "" for line in text]
    return schema_comment + "\n".join(lines) + "\n"


def _section(name: str, value: Any, comments: Mapping[str, str]) -> list[str]:
    note = f"  # {_COMMENTS[name]}" if name in _COMMENTS else ""
    match value:
        case dict():
            lines = [f"{name}:"]
            for key, item in cast(dict[str, Any], value).items():
                if comment := comments.get(f"{name}.{key}"):
                    lines.append(f"  # {escape_line(' '.join(comment.split()))}")
                lines += _entry(f"  {_scalar(key)}: ", item, "    ")
            return lines
        case list():
            return [f"{name}:", *(line for item in cast(list[Any], value) for line in _entry("  - ", item, "    "))]
        case _:
            return [f"{name}: {_flow(value)}{note}"]


def _entry(lead: str, value: Any, inner: str) -> list[str]:
    """Return a value on a single line if it fits, else a line for each of its parts."""
    flow = _flow(value)
    if len(lead) + len(flow) + 4 <= _WIDTH or not isinstance(value, dict | list) or not value:
        return [f"{lead}{flow}"]
    is_item = lead.rstrip().endswith("-")
    lines: list[str] = [] if is_item else [lead.rstrip()]
    if isinstance(value, Mapping):
        for index, (key, item) in enumerate(cast(Mapping[str, Any], value).items()):
            first = lead if is_item and index == 0 else inner
            lines += _entry(f"{first}{_scalar(key)}: ", item, f"{inner}  ")
        return lines
    return [lines[0] if lines else lead.rstrip()] + [
        line for item in cast(Sequence[Any], value) for line in _entry(f"{inner}- ", item, f"{inner}  ")
    ]


def _flow(value: Any) -> str:
    text = _dump(value, allow_unicode=True)
    if escape_text(text) != text:  # characters that no reader sees, such as marks that change the direction of text
        text = _dump(value, allow_unicode=False)
    # YAML 1.1 reads `on` as true. The engines read YAML 1.2, as the other stack files.
    return text.removesuffix("...\n").rstrip("\n").replace("{'on': ", "{on: ").replace(", 'on': {", ", on: {")


def _dump(value: Any, *, allow_unicode: bool) -> str:
    return yaml.dump(
        value, Dumper=GoSafeDumper, default_flow_style=True, sort_keys=False, allow_unicode=allow_unicode, width=100_000
    )


def _scalar(key: str) -> str:
    return _flow(key)
