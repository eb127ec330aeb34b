"""Texts of a drift report: grouped causes, who and when, what is ignored, and what could not be checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakewright_spark.times import format_json_time_as_text

from lakewright.ci.documents import UNREACHABLE, DriftDifference, DriftGroup, FleetDrift, StackDriftReport
from lakewright.ci.markdown import clipped, inline_code, size_of
from lakewright.fleet.text_table import plural
from lakewright.terminal.escaping import escape_text

LIMITS = {"markdown": 65_536, "slack": 35_000, "text": 1_000_000}
"""Bytes of a text by its format. Slack cuts messages of more than 40,000 characters."""
_MOST_DIFFERENCES = 30
"""Differences of one tenant that are listed."""
_LONGEST_VALUE = 120
_LONGEST_PROBLEM = 1_000
"""Characters of a problem: a longer one would leave no place for the differences."""


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

    def lines(self, title: str, items: Iterable[str]) -> list[str]:
        """Return a titled list; nothing without items."""
        listed = [f"{self.item}{item}" for item in items]
        return [self.heading.format(title), "", *listed, ""] if listed else []


def _slack_code(text: str) -> str:
    """Return a text as code of Slack, whose three structural characters are entities."""
    line = " ".join(escape_text(text).split()).replace("`", "'")
    return f"`{line.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}`" if line else ""


def _on_one_line(text: str) -> str:
    return " ".join(escape_text(text).split())


_STYLES = {
    SummaryFormat.MARKDOWN: _Style("#### {}", "- ", inline_code),
    SummaryFormat.SLACK: _Style("*{}*", "• ", _slack_code),
    SummaryFormat.TEXT: _Style("{}:", "  - ", _on_one_line),
}


def headline(drift: FleetDrift) -> str:
    """Return the result in one sentence."""
    total = plural(len(drift.stacks), "tenant")
    differences = sum(len(stack.found) for stack in drift.drifted)
    words = [f"drift in {len(drift.drifted):,} of {total} ({plural(differences, 'difference')})"]
    if not drift.drifted:
        words = [f"no drift in {total}"]
    if unchecked := len(drift.unchecked):
        words.append(f"{plural(unchecked, 'tenant')} not fully checked")
    elif drift.problems:
        words.append("not everything could be checked")
    if ignored := sum(len(stack.ignored) for stack in drift.stacks):
        words.append(f"{ignored:,} ignored")
    sentence = ", ".join(words)
    return sentence[0].upper() + sentence[1:]


def needs_attention(drift: FleetDrift) -> bool:
    """Return whether there is drift, or something could not be checked."""
    return bool(drift.drifted or drift.unchecked or drift.problems)


def render_summary(drift: FleetDrift, form: SummaryFormat, limit: int | None = None) -> str:
    """Return the text of a drift report. Whole lines at its end are left out if it is longer than the limit."""
    style = _STYLES[form]
    title = f"### {headline(drift)}" if form is SummaryFormat.MARKDOWN else style.heading.format(headline(drift))
    lines = [title.rstrip(":"), ""]
    lines += style.lines("Not checked", _problems(drift, style))
    lines += style.lines("Causes on several tenants", _causes(drift, style))
    for stack in sorted(drift.drifted, key=lambda each: each.stack):
        lines += style.lines(_stack_title(stack, style), _differences(stack, style))
    lines += style.lines("Ignored by rules", _ignored(drift, style))
    lines += style.lines("Notes", (style.code(note) for note in drift.notes))
    return _fit(lines, limit or LIMITS[form.value])


def groups_of(drift: FleetDrift) -> list[DriftGroup]:
    """Return the causes on several tenants: those of the document, else by kind, type, property and actor."""
    if drift.groups:
        return [group for group in drift.groups if group.kind != UNREACHABLE]
    found: dict[tuple[str, str, str, str | None], list[str]] = {}
    for stack in drift.drifted:
        for each in stack.found:
            key = (each.kind, each.type, each.property, each.actor.name if each.actor else None)
            found.setdefault(key, []).append(stack.stack)
    groups = [
        DriftGroup(kind=kind, type=type_, property=path, actor=actor, stacks=sorted({*stacks}), count=len(stacks))
        for (kind, type_, path, actor), stacks in found.items()
    ]
    return sorted((each for each in groups if len(each.stacks) > 1), key=lambda each: (-len(each.stacks), each.type))


def _problems(drift: FleetDrift, style: _Style) -> list[str]:
    """Return what could not be checked. A problem of many tenants, such as a server that is down, is one line."""
    tenants: dict[str, list[str]] = {}
    for stack in sorted(drift.unchecked, key=lambda each: each.stack):
        for problem in dict.fromkeys(stack.unchecked):
            tenants.setdefault(problem, []).append(stack.stack)
    listed = [f"{style.code(_names(names))}: {_problem(problem, style)}" for problem, names in tenants.items()]
    return [*(_problem(problem, style) for problem in drift.problems), *listed]


def _problem(problem: str, style: _Style) -> str:
    return style.code(clipped(problem, _LONGEST_PROBLEM))


def _causes(drift: FleetDrift, style: _Style) -> list[str]:
    listed: list[str] = []
    for group in groups_of(drift):
        what = group.text or " ".join(
            [_property(group.type, group.property), group.kind, *([f"by {group.actor}"] if group.actor else [])]
        )
        listed.append(f"{style.code(what)}: {plural(len(group.stacks), 'tenant')} ({style.code(_names(group.stacks))})")
    return listed


def _names(stacks: list[str]) -> str:
    return ", ".join(stacks[:10]) + (f" and {len(stacks) - 10} more" if len(stacks) > 10 else "")


def _stack_title(stack: StackDriftReport, style: _Style) -> str:
    kinds = Counter(difference.kind for difference in stack.found)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    where = f" in {style.code(stack.environment)}" if stack.environment else ""
    updating = f", while an update runs: {style.code(', '.join(stack.locked))}" if stack.locked else ""
    return f"{style.code(stack.stack)}{where}: {counted}{updating}"


def _differences(stack: StackDriftReport, style: _Style) -> list[str]:
    listed = [_difference(difference, style) for difference in stack.found[:_MOST_DIFFERENCES]]
    left = len(stack.found) - len(listed)
    return [*listed, f"{plural(left, 'further difference')}"] if left else listed


def _difference(difference: DriftDifference, style: _Style) -> str:
    what = style.code(" ".join([_kind(difference.type), difference.resource, difference.property]).strip())
    if difference.kind == "changed":
        values = f": declared {style.code(_value(difference.declared))}, found {style.code(_value(difference.found))}"
    else:
        values = f": {difference.kind}"
        if difference.found not in (None, "", [], {}):
            values += f" {style.code(_value(difference.found))}"
    return what + values + _by(difference, style)


def _by(difference: DriftDifference, style: _Style) -> str:
    actor = difference.actor
    if actor is None:
        return ""
    when = f" at {style.code(format_json_time_as_text(actor.at))}" if actor.at else ""
    verb = "allowed for" if actor.is_allowed_only else "by"
    return f", {verb} {style.code(actor.name)}{when}"


def _ignored(drift: FleetDrift, style: _Style) -> list[str]:
    listed: list[str] = []
    for stack in sorted(drift.stacks, key=lambda each: each.stack):
        for each in stack.ignored:
            rule = each.ignored
            what = style.code(f"{stack.stack}: {_kind(each.type)} {each.resource} {each.property}".strip())
            until = f" until {style.code(rule.until)}" if rule and rule.until else ""
            listed.append(f"{what}{until}: {style.code(rule.reason if rule else '')}{_by(each, style)}")
    return listed


def _property(type_: str, path: str) -> str:
    return f"{_kind(type_)}.{path}" if path else _kind(type_)


def _kind(type_: str) -> str:
    return type_.rpartition(":")[2].rpartition("/")[2]


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _fit(lines: list[str], limit: int) -> str:
    text = "\n".join(lines).rstrip() + "\n"
    if size_of(text) <= limit:
        return text
    kept: list[str] = []
    left = limit - 200  # for the sentence
    for line in lines:
        left -= size_of(line) + 1
        if left < 0:
            break
        kept.append(line)
    rest = sum(bool(line.strip()) for line in lines[len(kept) :])
    return (
        "\n".join([*kept, "", f"{plural(rest, 'line')} left out, as the text has at most {limit:,} characters."]) + "\n"
    )
