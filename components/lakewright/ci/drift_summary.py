"""Texts of a drift report: grouped causes, actors and times, ignored drift, and parts that could not be checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakewright_spark.times import format_json_time_as_text

from lakewright.ci.documents import UNREACHABLE, DriftDifference, FleetDrift, SharedCause, StackDriftReport
from lakewright.ci.markdown import clip, count_bytes, format_inline_code
from lakewright.terminal.escaping import escape_text
from lakewright.terminal.text_lines import plural

LIMITS = {"markdown": 65_536, "slack": 35_000, "text": 1_000_000}
"""Bytes of a text by its format. Slack cuts messages of more than 40,000 characters."""
_MOST_DIFFERENCES = 30
"""Differences of one tenant that are listed."""
_LONGEST_VALUE = 120
_LONGEST_PROBLEM = 1_000
"""Characters of a problem: a longer problem would leave no room for the differences."""


class SummaryFormat(StrEnum):
    """Formats of a summary."""

    MARKDOWN = "markdown"
    SLACK = "slack"
    TEXT = "text"


@dataclass(frozen=True)
class _Style:
    """How a format marks headings, list items and texts from elsewhere."""

    heading: str
    item: str
    code: Callable[[str], str]

    def format_list(self, title: str, items: Iterable[str]) -> list[str]:
        """Return a titled list; nothing without items."""
        item_lines = [f"{self.item}{item}" for item in items]
        return [self.heading.format(title), "", *item_lines, ""] if item_lines else []


def _format_slack_code(text: str) -> str:
    """Return a text as code of Slack, whose three structural characters are entities."""
    line = " ".join(escape_text(text).split()).replace("`", "'")
    return f"`{line.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}`" if line else ""


def _join_lines(text: str) -> str:
    return " ".join(escape_text(text).split())


_STYLES = {
    SummaryFormat.MARKDOWN: _Style("#### {}", "- ", format_inline_code),
    SummaryFormat.SLACK: _Style("*{}*", "• ", _format_slack_code),
    SummaryFormat.TEXT: _Style("{}:", "  - ", _join_lines),
}


def format_headline(drift: FleetDrift) -> str:
    """Return the result in one sentence."""
    total = plural(len(drift.stacks), "tenant")
    differences = sum(len(stack.active_differences) for stack in drift.drifted)
    parts = [f"drift in {len(drift.drifted):,} of {total} ({plural(differences, 'difference')})"]
    if not drift.drifted:
        parts = [f"no drift in {total}"]
    if unchecked := len(drift.unchecked):
        parts.append(f"{plural(unchecked, 'tenant')} not fully checked")
    elif drift.problems:
        parts.append("not everything could be checked")
    if ignored := sum(len(stack.ignored) for stack in drift.stacks):
        parts.append(f"{ignored:,} ignored")
    sentence = ", ".join(parts)
    return sentence[0].upper() + sentence[1:]


def needs_attention(drift: FleetDrift) -> bool:
    """Return whether there is drift, or something could not be checked."""
    return bool(drift.drifted or drift.unchecked or drift.problems)


def render_summary(drift: FleetDrift, form: SummaryFormat, limit: int | None = None) -> str:
    """Return the text of a drift report. Whole lines at its end are left out if it is longer than the limit."""
    style = _STYLES[form]
    title = (
        f"### {format_headline(drift)}"
        if form is SummaryFormat.MARKDOWN
        else style.heading.format(format_headline(drift))
    )
    lines = [title.rstrip(":"), ""]
    lines += style.format_list("Not checked", _list_problems(drift, style))
    lines += style.format_list("Causes on several tenants", _list_causes(drift, style))
    for stack in sorted(drift.drifted, key=lambda report: report.stack):
        lines += style.format_list(_format_stack_title(stack, style), _list_differences(stack, style))
    lines += style.format_list("Ignored by rules", _list_ignored(drift, style))
    lines += style.format_list("Notes", (style.code(note) for note in drift.notes))
    return _fit_to_limit(lines, limit or LIMITS[form.value])


def list_shared_causes(drift: FleetDrift) -> list[SharedCause]:
    """Return the causes on several tenants: the document's groups, else groups by kind, type, property and actor."""
    if drift.groups:
        return [group for group in drift.groups if group.kind != UNREACHABLE]
    stacks_by_cause: dict[tuple[str, str, str, str | None], list[str]] = {}
    for stack in drift.drifted:
        for difference in stack.active_differences:
            key = (
                difference.kind,
                difference.type,
                difference.property,
                difference.actor.name if difference.actor else None,
            )
            stacks_by_cause.setdefault(key, []).append(stack.stack)
    groups = [
        SharedCause(kind=kind, type=type_, property=path, actor=actor, stacks=sorted({*stacks}), count=len(stacks))
        for (kind, type_, path, actor), stacks in stacks_by_cause.items()
    ]
    return sorted(
        (cause for cause in groups if len(cause.stacks) > 1), key=lambda cause: (-len(cause.stacks), cause.type)
    )


def _list_problems(drift: FleetDrift, style: _Style) -> list[str]:
    """Return the parts that could not be checked. A problem of many tenants, such as a stopped server, is one line."""
    tenants: dict[str, list[str]] = {}
    for stack in sorted(drift.unchecked, key=lambda report: report.stack):
        for problem in dict.fromkeys(stack.unchecked):
            tenants.setdefault(problem, []).append(stack.stack)
    tenant_problems = [
        f"{style.code(_join_names(names))}: {_format_problem(problem, style)}" for problem, names in tenants.items()
    ]
    return [*(_format_problem(problem, style) for problem in drift.problems), *tenant_problems]


def _format_problem(problem: str, style: _Style) -> str:
    return style.code(clip(problem, _LONGEST_PROBLEM))


def _list_causes(drift: FleetDrift, style: _Style) -> list[str]:
    causes: list[str] = []
    for group in list_shared_causes(drift):
        cause = group.text or " ".join(
            [_format_property(group.type, group.property), group.kind, *([f"by {group.actor}"] if group.actor else [])]
        )
        causes.append(
            f"{style.code(cause)}: {plural(len(group.stacks), 'tenant')} ({style.code(_join_names(group.stacks))})"
        )
    return causes


def _join_names(stacks: list[str]) -> str:
    return ", ".join(stacks[:10]) + (f" and {len(stacks) - 10} more" if len(stacks) > 10 else "")


def _format_stack_title(stack: StackDriftReport, style: _Style) -> str:
    kinds = Counter(difference.kind for difference in stack.active_differences)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    environment = f" in {style.code(stack.environment)}" if stack.environment else ""
    updating = f", while an update runs: {style.code(', '.join(stack.locked))}" if stack.locked else ""
    return f"{style.code(stack.stack)}{environment}: {counted}{updating}"


def _list_differences(stack: StackDriftReport, style: _Style) -> list[str]:
    lines = [_format_difference(difference, style) for difference in stack.active_differences[:_MOST_DIFFERENCES]]
    remaining = len(stack.active_differences) - len(lines)
    return [*lines, f"{plural(remaining, 'further difference')}"] if remaining else lines


def _format_difference(difference: DriftDifference, style: _Style) -> str:
    subject = style.code(" ".join([_parse_kind(difference.type), difference.resource, difference.property]).strip())
    if difference.kind == "changed":
        declared_text, live_text = _format_value(difference.declared), _format_value(difference.found)
        values = f": declared {style.code(declared_text)}, found {style.code(live_text)}"
    else:
        values = f": {difference.kind}"
        if difference.found not in (None, "", [], {}):
            values += f" {style.code(_format_value(difference.found))}"
    return subject + values + _format_actor(difference, style)


def _format_actor(difference: DriftDifference, style: _Style) -> str:
    actor = difference.actor
    if actor is None:
        return ""
    when = f" at {style.code(format_json_time_as_text(actor.at))}" if actor.at else ""
    verb = "allowed for" if actor.is_allowed_only else "by"
    return f", {verb} {style.code(actor.name)}{when}"


def _list_ignored(drift: FleetDrift, style: _Style) -> list[str]:
    lines: list[str] = []
    for stack in sorted(drift.stacks, key=lambda report: report.stack):
        for difference in stack.ignored:
            rule = difference.ignored
            subject = style.code(
                f"{stack.stack}: {_parse_kind(difference.type)} {difference.resource} {difference.property}".strip()
            )
            until = f" until {style.code(rule.until)}" if rule and rule.until else ""
            lines.append(
                f"{subject}{until}: {style.code(rule.reason if rule else '')}{_format_actor(difference, style)}"
            )
    return lines


def _format_property(type_: str, path: str) -> str:
    return f"{_parse_kind(type_)}.{path}" if path else _parse_kind(type_)


def _parse_kind(type_: str) -> str:
    return type_.rpartition(":")[2].rpartition("/")[2]


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _fit_to_limit(lines: list[str], limit: int) -> str:
    text = "\n".join(lines).rstrip() + "\n"
    if count_bytes(text) <= limit:
        return text
    kept_lines: list[str] = []
    remaining = limit - 200  # for the sentence
    for line in lines:
        remaining -= count_bytes(line) + 1
        if remaining < 0:
            break
        kept_lines.append(line)
    omitted = sum(bool(line.strip()) for line in lines[len(kept_lines) :])
    return (
        "\n".join(
            [*kept_lines, "", f"{plural(omitted, 'line')} left out, as the text has at most {limit:,} characters."]
        )
        + "\n"
    )
