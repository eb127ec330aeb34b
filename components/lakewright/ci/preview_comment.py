"""The comment on a pull request: one table of all tenants' changes, and each tenant's details to open."""

from __future__ import annotations

from dataclasses import dataclass

from lakewright.ci.documents import FleetPreview
from lakewright.ci.markdown import (
    clip,
    count_bytes,
    escape,
    format_code_block,
    format_details,
    format_inline_code,
    format_table,
)
from lakewright.ci.preview_rows import ResourceChange, TenantChanges, group_rows, list_tenant_changes
from lakewright.names.tenant_parts import group_by_part
from lakewright.terminal.text_lines import plural

MARKER = "<!-- lakewright: preview of the fleet -->"
"""First line of the comment, by which the next run finds it."""
LIMIT = 65_536
"""Characters that GitHub allows in a comment."""
_HEAD = ["tenant", "create", "update", "replace", "delete", "note"]
_LOSS = "> [!CAUTION]\n> Data may be lost: warehouses, tables, buckets or columns are deleted"
_SIGNS = {
    "create": "+",
    "adopt": "=",
    "import": "+",
    "update": "~",
    "replace": "-",
    "delete": "-",
    "drift": "~",
    "retain": " ",
}
"""Signs of lines, which a block of language `diff` displays in color."""
_MOST_LINES = 200
"""Lines of one tenant's details."""
_MOST_PROPERTIES = 20
"""Properties of one resource."""
_MOST_MESSAGES = 10
_MOST_NAMES = 20
"""Tenants that the warning names."""
_LONGEST_NAME = 100
"""Characters of a name in the table and in titles."""
_MOST_GROUPED = 50
"""Tenants with equal changes that their details name."""
_LONGEST_LINE = 1_000
"""Characters of a line of details, and of the reason why there is no preview."""


@dataclass(frozen=True)
class CiRun:
    """Facts about the run of CI that are shown below the table."""

    commit: str = ""
    url: str = ""
    """Address of the run, where the plans are."""


def render_comment(preview: FleetPreview, run: CiRun | None = None, limit: int = LIMIT) -> str:
    """Return the comment as Markdown, of at most `limit` bytes. Details are left out first, then rows."""
    rows = list_tenant_changes(preview)
    notable_rows = [row for row in rows if row.changes or row.has_failed or row.is_skipped or row.is_absent]
    unchanged = [row for row in rows if row not in notable_rows]
    title = f"### {'Update' if preview.command == 'up' else 'Preview'}: {_format_headline(notable_rows, unchanged)}"
    heads = ("\n\n".join([MARKER, title, *_format_warning(notable_rows, most)]) for most in (_MOST_NAMES, 3))
    opening = next((head for head in heads if count_bytes(head) <= limit // 2), f"{MARKER}\n\n{title}\n\n{_LOSS}.")
    closing = "\n\n".join([*_format_unchanged(unchanged), *_format_footer(run or CiRun())])
    budget = (
        limit - count_bytes(opening) - count_bytes(closing) - 400
    )  # for sentences about what is left out, and separators
    if budget < 0:
        closing, budget = "", limit - count_bytes(opening) - 400
    whole = _format_rows(notable_rows, budget)
    sections, left_out = _format_sections(notable_rows, budget - count_bytes(whole))
    if left_out:
        sections.append(
            f"The details of {plural(left_out, 'tenant')} are left out, as a comment has at most {limit:,} characters."
            " The artifact of this run has the whole preview."
        )
    return "\n\n".join(part for part in (opening, whole, *sections, closing) if part) + "\n"


def render_failure(reason: str, run: CiRun | None = None) -> str:
    """Return the comment of a run without a readable preview, which replaces an older preview."""
    parts = [
        MARKER,
        "### Preview: failed",
        f"There is no preview: {format_inline_code(clip(reason, _LONGEST_LINE))}",
        *_format_footer(run or CiRun()),
    ]
    return "\n\n".join(parts) + "\n"


def _format_headline(notable_rows: list[TenantChanges], unchanged: list[TenantChanges]) -> str:
    changed = [row for row in notable_rows if row.changes]
    if not notable_rows:
        return f"no changes in {plural(len(unchanged), 'tenant')}"
    total = len(notable_rows) + len(unchanged)
    failed = sum(row.has_failed for row in notable_rows)
    text = f"changes in {len(changed):,} of {plural(total, 'tenant')}"
    return f"{text}, {failed:,} failed" if failed else text


def _format_warning(notable_rows: list[TenantChanges], most: int) -> list[str]:
    """Return the changes that lose data, before everything else."""
    losing = [row for row in notable_rows if row.losses]
    if not losing:
        return []
    names = ", ".join(_format_name(row.title) for row in losing[:most])
    more = f" and {plural(len(losing) - most, 'other tenant')}" if len(losing) > most else ""
    return [f"{_LOSS} in {names}{more}."]


def _format_rows(notable_rows: list[TenantChanges], budget: int) -> str:
    if not notable_rows:
        return ""
    rows = [_format_row(group) for group in group_rows(notable_rows)]
    whole = format_table(_HEAD, rows, numbers=4)
    row_count = len(rows)
    while row_count and count_bytes(whole) > budget:
        row_count = min(row_count - 1, row_count * max(budget, 0) // count_bytes(whole))
        sentence = (
            f"The rows of {plural(len(rows) - row_count, 'further tenant')} are left out, as the comment is full."
        )
        whole = f"{format_table(_HEAD, rows[:row_count], numbers=4)}\n\n{sentence}"
    return whole


def _format_row(group: list[TenantChanges]) -> list[str]:
    """Return the row of tenants with equal changes. The numbers count each tenant's changes."""
    row = group[0]
    counts = [_format_count(row, effect) for effect in ("create", "update", "replace", "delete")]
    notes = [*([f"each of {plural(len(group), 'tenant')}"] if len(group) > 1 else []), *_list_notes(row)]
    return [_format_title(group), *counts, "; ".join(notes)]


def _format_title(group: list[TenantChanges]) -> str:
    suffix = f" and {plural(len(group) - 1, 'other tenant')}" if len(group) > 1 else ""
    return _format_name(group[0].title) + suffix


def _format_count(row: TenantChanges, effect: str) -> str:
    count = row.count(effect)
    is_dangerous = effect in ("replace", "delete")
    return "" if not count else f"**{count}**" if is_dangerous else str(count)


def _list_notes(row: TenantChanges) -> list[str]:
    notes: list[str] = []
    if row.losses:
        names = [_format_name(f"{_parse_kind(change)} {change.name}") for change in row.losses[:3]]
        more = f" and {len(row.losses) - 3} more" if len(row.losses) > 3 else ""
        notes.append(f"**data loss**: {', '.join(names)}{more}")
    notes += _list_deleted_contents(row)
    if row.has_failed:
        notes.append("**failed**")
    if row.is_skipped:
        notes.append("not previewed")
    if row.is_absent:
        notes.append("not deployed; `lakewright fleet up --create` creates its stack")
    if adopted := row.count("adopt"):
        notes.append(f"{adopted} adopted")
    if imported := row.count("import"):
        notes.append(f"{imported} imported")
    if retained := row.count("retain"):
        notes.append(f"{retained} retained")
    if drifted := row.count("drift"):
        notes.append(f"{drifted} changed outside the stack")
    return notes


def _list_deleted_contents(row: TenantChanges) -> list[str]:
    lines = [line for line in row.stack.deleted_contents if line.summary != "nothing"]
    notes = [f"deletes {escape(line.summary)} with {_format_name(line.name)}" for line in lines[:3]]
    return [*notes, *([f"deletes the contents of {len(lines) - 3} more"] if len(lines) > 3 else [])]


def _format_sections(notable_rows: list[TenantChanges], budget: int) -> tuple[list[str], int]:
    """Return each tenant's details while they fit, and the number of tenants whose details do not fit."""
    sections: list[str] = []
    groups = [group for group in group_rows(notable_rows) if _list_lines(group[0])]
    for index, group in enumerate(groups):
        titles = ", ".join(row.title for row in group[:_MOST_GROUPED])
        more = f" and {len(group) - _MOST_GROUPED:,} more" if len(group) > _MOST_GROUPED else ""
        head = [f"# equal changes, shown for {group[0].title}: {titles}{more}"] if len(group) > 1 else []
        lines = [clip(line, _LONGEST_LINE) for line in [*head, *_list_lines(group[0])]]
        section = format_details(f"{_format_title(group)}: {_summarize(group[0])}", format_code_block(lines, "diff"))
        budget -= count_bytes(section) + 2
        if budget < 0:
            return sections, sum(len(left_out) for left_out in groups[index:])
        sections.append(section)
    return sections, 0


def _summarize(row: TenantChanges) -> str:
    effects = ("delete", "retain", "replace", "update", "adopt", "create")
    counts = [f"{count} to {effect}" for effect in effects if (count := row.count(effect))]
    return ", ".join([*counts, *(["failed"] if row.has_failed else [])]) or "see below"


def _list_lines(row: TenantChanges) -> list[str]:
    lines: list[str] = []
    for title, changes in group_by_part(row.changes):
        if title:
            lines.append(f"@@ {title} @@")
        lines += _list_change_lines(changes)
    messages = [*([row.stack.error] if row.stack.error else []), *row.stack.messages]
    for message in dict.fromkeys(messages[:_MOST_MESSAGES]):
        lines += [f"! {part}" for part in message.splitlines() if part.strip()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {plural(len(lines) - _MOST_LINES, 'further line')}"]
    return [clip(line, _LONGEST_LINE) for line in lines]


def _list_change_lines(changes: list[ResourceChange]) -> list[str]:
    lines: list[str] = []
    for change in changes:
        loss = "  (data loss)" if change.loses_data else ""
        lines.append(f"{_SIGNS[change.effect]} {change.effect} {_parse_kind(change)} {change.name}{loss}")
        properties = change.step.properties
        lines += [
            f"    {property_line.sign} {property_line.path}: {property_line.text}"
            for property_line in properties[:_MOST_PROPERTIES]
        ]
        if len(properties) > _MOST_PROPERTIES:
            lines.append(f"    … {plural(len(properties) - _MOST_PROPERTIES, 'further change')}")
        elif not properties and change.step.keys:
            lines.append(f"    ~ {', '.join(change.step.keys)}")
    return lines


def _format_name(text: str) -> str:
    return format_inline_code(clip(text, _LONGEST_NAME))


def _parse_kind(change: ResourceChange) -> str:
    return change.type.rpartition(":")[2].rpartition("/")[2]


def _format_unchanged(unchanged: list[TenantChanges]) -> list[str]:
    if not unchanged:
        return []
    names = ", ".join(_format_name(row.title) for row in unchanged[:500])
    more = f" and {len(unchanged) - 500:,} more" if len(unchanged) > 500 else ""
    return [format_details(f"{plural(len(unchanged), 'tenant')} without changes", names + more)]


def _format_footer(run: CiRun) -> list[str]:
    parts: list[str] = []
    if run.commit:
        parts.append(f"Commit {format_inline_code(run.commit[:12])}")
    if run.url.startswith(("https://", "http://")):
        parts.append(f'<a href="{escape(run.url)}">run with the plans</a>')
    return [" · ".join(parts)] if parts else []
