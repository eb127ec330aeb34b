"""A drift report as text for a terminal or a log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from lakewright_spark.times import format_json_time_as_text
from rich.markup import escape
from rich.table import Table

from lakewright.drift.model import Actor, Difference, DifferenceKind, DriftReport, StackDrift
from lakewright.terminal.escaping import escape_line
from lakewright.terminal.text_lines import plural

if TYPE_CHECKING:
    from rich.console import Console

LOG_WIDTH = 200
"""Columns where there is no terminal."""
_LONGEST = 60
_MOST_NAMES = 10
"""Names of stacks with the same problem that are printed."""
_COLORS = {
    DifferenceKind.CHANGED: "yellow",
    DifferenceKind.GONE: "red",
    DifferenceKind.UNMANAGED: "cyan",
    DifferenceKind.UNREACHABLE: "red",
    DifferenceKind.CHECK: "red",
}


def print_report(report: DriftReport, console: Console) -> None:
    """Print a table of all differences, the problems by stack, and a summary."""
    differences = [(stack, difference) for stack in report.stacks for difference in stack.differences]
    if differences:
        console.print(_create_table(differences))
    lines = [
        f"{escape_markup(stack.stack)}: locked, so an update may be running: {escape_markup(holder)}"
        for stack in report.stacks
        for holder in stack.locked
    ]
    for problem, stacks in _group_by_problem(report).items():
        lines.append(f"[red]{escape_markup(_format_names(stacks))}: not checked:[/] {escape_markup(problem)}")
    lines += [f"[bold]one cause:[/] {escape_markup(str(drift_group['text']))}" for drift_group in report.groups]
    lines += [f"note: {escape_markup(note)}" for note in report.notes]
    for line in lines:
        # Not wrapped: a word of a server's message at the start of a line would look like a message of its own.
        console.print(line, soft_wrap=True)
    console.print(summary(report))


def _group_by_problem(report: DriftReport) -> dict[str, list[str]]:
    """Return the stacks of each problem. A server that is down is a single problem of many stacks."""
    stacks_by_problem: dict[str, list[str]] = {}
    for stack in report.stacks:
        for problem in stack.problems:
            stacks_by_problem.setdefault(problem, []).append(stack.stack)
    return stacks_by_problem


def _format_names(stacks: list[str]) -> str:
    unlisted_count = len(stacks) - _MOST_NAMES
    return (
        ", ".join(stacks) if unlisted_count <= 0 else f"{', '.join(stacks[:_MOST_NAMES])} and {unlisted_count:,} more"
    )


def summary(report: DriftReport) -> str:
    """Return one line with the totals."""
    drifted = [stack for stack in report.stacks if stack.drift]
    failed = [stack for stack in report.stacks if stack.problems]
    ignored = sum(1 for difference in report.differences() if difference.ignored)
    count = sum(len(stack.drift) for stack in drifted)
    compared = sum(stack.resources for stack in report.stacks)
    total = sum(stack.total_resources for stack in report.stacks)
    parts = [
        f"{plural(len(report.stacks), 'tenant')}, {compared:,} of {plural(total, 'resource')} compared",
        f"{plural(count, 'difference')} on {plural(len(drifted), 'tenant')}" if count else "no drift found",
        *([f"{ignored:,} ignored"] if ignored else []),
        *([f"{plural(len(failed), 'tenant')} could not be checked completely"] if failed else []),
    ]
    return f"{'; '.join(parts)}. {report.seconds:.1f} s."


def _create_table(differences: list[tuple[StackDrift, Difference]]) -> Table:
    actors = any(difference.actor for _, difference in differences)
    table = Table("tenant", "resource", "property", "declared", "found", "kind", box=None, pad_edge=False)
    if actors:
        table.add_column("changed by")
    for stack, difference in differences:
        kind = difference.kind.value
        if difference.ignored:
            kind = f"{kind} (ignored: until {difference.ignored.until}: {difference.ignored.reason})"
        cells = [
            stack.tenant,
            f"{difference.type.rpartition(':')[2]} {difference.resource}",
            difference.property,
            *map(_format_value, _drop_equal_entries(difference.declared, difference.found)),
            kind,
        ]
        color = "dim" if difference.ignored else _COLORS[difference.kind]
        cells = [*map(escape_markup, cells[:-1]), f"[{color}]{escape_markup(cells[-1])}[/]"]
        table.add_row(*cells, *([escape_markup(_format_actor(difference.actor))] if actors else []))
    return table


def _format_actor(actor: Actor | None) -> str:
    if actor is None:
        return ""
    name = actor.describe() if actor.is_allowed_only else actor.name
    return f"{name} at {format_json_time_as_text(actor.at)} ({actor.source})"


def _drop_equal_entries(declared_value: Any, found_value: Any) -> tuple[Any, Any]:
    """Return two values without the entries of lists that both have."""
    if not (isinstance(declared_value, list) and isinstance(found_value, list)):
        return cast(Any, declared_value), found_value
    before, after = cast(list[Any], declared_value), cast(list[Any], found_value)
    only_declared, only_found = (
        [entry for entry in before if entry not in after],
        [entry for entry in after if entry not in before],
    )
    return (only_declared, only_found) if only_declared or only_found else (before, after)


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def escape_markup(text: str) -> str:
    """Return a text as a single line without effect as markup of Rich or on terminals."""
    return escape(escape_line(text))
