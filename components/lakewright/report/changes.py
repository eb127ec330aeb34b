"""The model of a preview's page: each step with its whole documents before and after, line by line.

A document is a policy or configuration that a property has as JSON text, the manifest of a Kubernetes object, or all
other properties of a resource.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.model.signatures import UNKNOWN
from lakewright_spark.times import format_json_time

from lakewright.names.tenant_parts import TenantPart, find_part

if TYPE_CHECKING:
    from lakewright_engine.display.report import OperationReport, StepReport

_UNCHANGED = frozenset({"same", "read", "read-replacement"})
_DANGEROUS = frozenset({"delete", "replace", "delete-replaced", "create-replacement"})
_MOST_LINES = 20_000
"""Lines of a document that are compared; longer documents are replaced as a whole."""


@dataclass(frozen=True)
class ComparedDocument:
    """A document before and after a step."""

    title: str
    """Path of the property, `manifest` or `properties`."""
    before: str
    """Empty if the document does not exist before."""
    after: str
    """Empty if the document does not exist afterwards."""

    def to_json(self) -> dict[str, Any]:
        """Return the document for the page, with the sign of each line: `+`, `-` or a space."""
        lines = compare_lines(self.before.splitlines(), self.after.splitlines())
        return {
            "title": self.title,
            "lines": [[sign, line] for sign, line in lines],
            "changed": self.before != self.after,
        }


def build_changes(report: OperationReport, *, stack: str, verb: str, now: datetime) -> dict[str, Any]:
    """Return the model of a page about the steps of a preview.

    Args:
        report: The report of the operation. It has no secrets.
        stack: Name of the stack.
        verb: The operation, such as `preview`.
        now: The time of the page.
    """
    order = list(TenantPart)
    steps = [step for step in report.steps if step.effect not in _UNCHANGED and (step.effect != "refresh" or step.keys)]
    described = [_describe_step(step) for step in steps]
    return {
        "version": 1,
        "stack": stack,
        "verb": verb,
        "at": format_json_time(now.replace(microsecond=0)),
        "changes": {op: count for op, count in report.changes.items() if count},
        "messages": list(report.messages),
        "steps": sorted(described, key=lambda step: order.index(step["part"])),
    }


def _describe_step(step: StepReport) -> dict[str, Any]:
    return {
        "op": step.effect,
        "dangerous": step.effect in _DANGEROUS,
        "failed": step.failed,
        "urn": step.urn,
        "type": step.type,
        "name": step.name,
        "part": find_part(step.type),
        "keys": step.keys,
        "documents": [document.to_json() for document in list_documents(step.type, step.old, step.new)],
    }


def list_documents(type_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[ComparedDocument]:
    """Return the documents of a resource before and after a step, the JSON documents of its properties first.

    Args:
        type_: Type token of the resource.
        old: The properties before; empty for a resource that is created.
        new: The properties after; empty for a resource that is deleted.
    """
    before, after = _remove_internal(old), _remove_internal(new)
    old_texts, new_texts = dict(_list_json_texts(before)), dict(_list_json_texts(after))
    paths = [*new_texts, *(path for path in old_texts if path not in new_texts)]
    documents = [
        ComparedDocument(path, _format_json(old_texts.get(path)), _format_json(new_texts.get(path))) for path in paths
    ]
    title = "manifest" if type_.startswith("kubernetes:") else "properties"
    remaining = ComparedDocument(title, _format_yaml(before, {*paths}), _format_yaml(after, {*paths}))
    return [*documents, *([remaining] if remaining.before or remaining.after else [])]


def _remove_internal(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in properties.items() if not key.startswith("__")}


def _list_json_texts(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and content of the texts in a value that are JSON objects or lists."""
    if isinstance(value, Mapping):
        for key, item in cast(Mapping[str, Any], value).items():
            yield from _list_json_texts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(cast(list[Any], value)):
            yield from _list_json_texts(item, f"{path}[{index}]")
    elif isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            yield path, json.loads(value)
        except ValueError:
            return


def _format_json(content: object) -> str:
    return "" if content is None else json.dumps(content, indent=2, ensure_ascii=False)


def _format_yaml(properties: Mapping[str, Any], elsewhere: set[str]) -> str:
    """Return properties as YAML, with a note in place of texts that are documents of their own."""
    if not properties:
        return ""
    import yaml  # noqa: PLC0415 - slow to load

    class BlockDumper(yaml.SafeDumper):
        """Writes texts of several lines as blocks."""

    BlockDumper.add_representer(str, _represent_text)
    content = _replace_documents(properties, elsewhere)
    text: str = yaml.dump(content, Dumper=BlockDumper, sort_keys=True, allow_unicode=True, width=10_000)
    return text


def _represent_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _replace_documents(value: Any, paths: set[str], path: str = "") -> Any:
    if path in paths:
        return "(see the document)"
    if value == UNKNOWN:
        return "[unknown]"
    if isinstance(value, Mapping):
        members = cast(Mapping[str, Any], value)
        return {key: _replace_documents(item, paths, f"{path}.{key}" if path else key) for key, item in members.items()}
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [_replace_documents(item, paths, f"{path}[{index}]") for index, item in enumerate(items)]
    return value


def compare_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Return all lines of two texts, each with its sign.

    >>> compare_lines(["a", "b"], ["a", "c"])
    [(' ', 'a'), ('-', 'b'), ('+', 'c')]
    """
    if len(before) + len(after) > _MOST_LINES:
        return [*(("-", line) for line in before), *(("+", line) for line in after)]
    lines: list[tuple[str, str]] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [(" ", line) for line in before[start:end]]
        else:
            lines += [("-", line) for line in before[start:end]] + [("+", line) for line in after[new_start:new_end]]
    return lines
