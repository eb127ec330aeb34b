"""The summary of what a run on many stacks would change: counts by kind, deletions in full, equal changes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright.fleet.results import FleetReport, StackResult
from lakewright.names.tenant_parts import mask_tenant
from lakewright.terminal.text_lines import plural
from lakewright.validation.documents import as_list, as_mapping

_UNCHANGED = ("same", "read", "refresh")
_DELETIONS = ("delete", "replace", "delete-replaced", "discard", "discard-replaced")
_NO_RESOURCES = ("pulumi:pulumi:", "pulumi:providers:")
_MAX_GROUPS = 10
_MAX_LINES = 20
"""Lines of one group."""
_NAMED_STACKS = 5


@dataclass(frozen=True)
class ChangeGroup:
    """Stacks with equal changes."""

    stacks: tuple[str, ...]
    lines: tuple[str, ...]
    """The changes. With several stacks, the tenant's name is masked in them."""


def summarize_changes(report: FleetReport, details: str) -> list[str]:
    """Return the lines to show before the question whether to perform the changes.

    Args:
        report: The preview of all stacks.
        details: File with every change.
    """
    changed = [(result.stack.name, _list_changed_steps(result)) for result in report.results]
    lines = ["Changes:", *_count_by_kind([step for _, steps in changed for step in steps])]
    deletions = [
        f"  {stack}: {_format_step(step)}"
        for stack, steps in changed
        for step in steps
        if _read_effect(step) in _DELETIONS
    ]
    if deletions:
        lines += ["", "Deletions and replacements:", *deletions]
    groups = group_changes(report)
    for group in groups[:_MAX_GROUPS]:
        lines += ["", f"{_format_stacks(group.stacks)}:", *(f"  {line}" for line in group.lines[:_MAX_LINES])]
        if len(group.lines) > _MAX_LINES:
            lines.append(f"  and {plural(len(group.lines) - _MAX_LINES, 'further change')}")
    if len(groups) > _MAX_GROUPS:
        lines += ["", f"{plural(len(groups) - _MAX_GROUPS, 'further group')} of stacks with equal changes"]
    return [*lines, "", f"All changes: {details}"]


def group_changes(report: FleetReport) -> list[ChangeGroup]:
    """Return stacks with equal changes together, the largest group first.

    One change of a template changes each tenant in the same way but for the tenant's name.
    """
    groups: dict[tuple[str, ...], list[StackResult]] = {}
    for result in report.results:
        lines = [_format_step(step) for step in _list_changed_steps(result)]
        if lines:
            names = (result.stack.name, result.stack.tenant)
            groups.setdefault(tuple(mask_tenant(line, names) for line in lines), []).append(result)
    change_groups = [
        ChangeGroup(
            tuple(result.stack.name for result in results),
            lines if len(results) > 1 else tuple(_format_step(step) for step in _list_changed_steps(results[0])),
        )
        for lines, results in groups.items()
    ]
    return sorted(change_groups, key=lambda group: -len(group.stacks))


def _list_changed_steps(result: StackResult) -> list[Mapping[str, object]]:
    steps = [as_mapping(step) for step in as_list(result.document.get("steps"))]
    return [
        step
        for step in steps
        if _read_effect(step) not in _UNCHANGED and not str(step.get("type")).startswith(_NO_RESOURCES)
    ]


def _read_effect(step: Mapping[str, object]) -> str:
    return str(step.get("result") or step.get("op") or "")


def _format_step(step: Mapping[str, object]) -> str:
    keys = ", ".join(str(key) for key in as_list(step.get("keys")))
    line = f"{_read_effect(step)} {step.get('type')} {step.get('name')}"
    return f"{line} [{keys}]" if keys else line


def _count_by_kind(steps: Sequence[Mapping[str, object]]) -> list[str]:
    """Return a line for each operation with the number of resources of each kind."""
    counts: dict[str, Counter[str]] = {}
    for step in steps:
        kind = str(step.get("type")).rpartition(":")[2].rpartition("/")[2]
        counts.setdefault(_read_effect(step), Counter())[kind] += 1
    width = max((len(effect) for effect in counts), default=0)
    return [
        f"  {effect:<{width}}  {', '.join(f'{count:,} {kind}' for kind, count in sorted(kinds.items()))}"
        for effect, kinds in sorted(counts.items())
    ] or ["  none"]


def _format_stacks(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = f" and {plural(len(names) - _NAMED_STACKS, 'other')}" if len(names) > _NAMED_STACKS else ""
    return f"{plural(len(names), 'stack')} ({', '.join(names[:_NAMED_STACKS])}{more})"
