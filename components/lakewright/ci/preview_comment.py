"""The comment on a pull request: one table of all tenants' changes, and each tenant's details to open."""

from __future__ import annotations

from dataclasses import dataclass

from lakewright.ci.documents import FleetPreview
from lakewright.ci.markdown import clipped, code_block, details, escape, inline_code, size_of, table
from lakewright.ci.preview_groups import group_rows
from lakewright.ci.preview_rows import ResourceChange, TenantChanges, rows_of
from lakewright.fleet.text_table import plural
from lakewright.names.tenant_parts import group_by_part

MARKER = "<!-- lakewright: preview of the fleet -->"
"""First line of the comment, by which the next run finds it."""
LIMIT = 65_536
"""Characters that GitHub allows in a comment."""
_HEAD = ["tenant", "create", "update", "replace", "delete", "note"]
_LOSS = "> [!CAUTION]\n> Data may be lost: warehouses, tables, buckets or columns go"
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
class RunFacts:
    """Facts about the run of CI that are shown below the table."""

    commit: str = ""
    url: str = ""
    """Address of the run, where the plans are."""


def render_comment(preview: FleetPreview, facts: RunFacts | None = None, limit: int = LIMIT) -> str:
    """Return the comment as Markdown, of at most `limit` bytes. Details are left out first, then rows."""
    rows = rows_of(preview)
    listed = [row for row in rows if row.changes or row.has_failed or row.is_skipped or row.is_absent]
    unchanged = [row for row in rows if row not in listed]
    title = f"### {'Update' if preview.command == 'up' else 'Preview'}: {_headline(listed, unchanged)}"
    heads = ("\n\n".join([MARKER, title, *_warning(listed, most)]) for most in (_MOST_NAMES, 3))
    opening = next((head for head in heads if size_of(head) <= limit // 2), f"{MARKER}\n\n{title}\n\n{_LOSS}.")
    closing = "\n\n".join([*_unchanged(unchanged), *_footer(facts or RunFacts())])
    budget = limit - size_of(opening) - size_of(closing) - 400  # for sentences about what is left out, and separators
    if budget < 0:
        closing, budget = "", limit - size_of(opening) - 400
    whole = _table(listed, budget)
    sections, left_out = _details(listed, budget - size_of(whole))
    if left_out:
        sections.append(
            f"The details of {plural(left_out, 'tenant')} are left out, as a comment has at most {limit:,} characters."
            " The artefact of this run has the whole preview."
        )
    return "\n\n".join(part for part in (opening, whole, *sections, closing) if part) + "\n"


def render_failure(reason: str, facts: RunFacts | None = None) -> str:
    """Return the comment of a run without a readable preview, so that an older preview does not stay."""
    parts = [
        MARKER,
        "### Preview: failed",
        f"There is no preview: {inline_code(clipped(reason, _LONGEST_LINE))}",
        *_footer(facts or RunFacts()),
    ]
    return "\n\n".join(parts) + "\n"


def _headline(listed: list[TenantChanges], unchanged: list[TenantChanges]) -> str:
    changed = [row for row in listed if row.changes]
    if not listed:
        return f"no changes in {plural(len(unchanged), 'tenant')}"
    total = len(listed) + len(unchanged)
    failed = sum(row.has_failed for row in listed)
    words = f"changes in {len(changed):,} of {plural(total, 'tenant')}"
    return f"{words}, {failed:,} failed" if failed else words


def _warning(listed: list[TenantChanges], most: int) -> list[str]:
    """Return the changes that lose data, before everything else."""
    losing = [row for row in listed if row.losses]
    if not losing:
        return []
    named = ", ".join(_name(row.title) for row in losing[:most])
    more = f" and {plural(len(losing) - most, 'other tenant')}" if len(losing) > most else ""
    return [f"{_LOSS} in {named}{more}."]


def _table(listed: list[TenantChanges], budget: int) -> str:
    if not listed:
        return ""
    rows = [_row(group) for group in group_rows(listed)]
    whole = table(_HEAD, rows, numbers=4)
    kept = len(rows)
    while kept and size_of(whole) > budget:
        kept = min(kept - 1, kept * max(budget, 0) // size_of(whole))
        sentence = f"The rows of {plural(len(rows) - kept, 'further tenant')} are left out, as the comment is full."
        whole = f"{table(_HEAD, rows[:kept], numbers=4)}\n\n{sentence}"
    return whole


def _row(group: list[TenantChanges]) -> list[str]:
    """Return the row of tenants with equal changes. The numbers are those of each tenant."""
    row = group[0]
    counts = [_number(row, effect) for effect in ("create", "update", "replace", "delete")]
    notes = [*([f"each of {plural(len(group), 'tenant')}"] if len(group) > 1 else []), *_notes(row)]
    return [_title(group), *counts, "; ".join(notes)]


def _title(group: list[TenantChanges]) -> str:
    others = f" and {plural(len(group) - 1, 'other tenant')}" if len(group) > 1 else ""
    return _name(group[0].title) + others


def _number(row: TenantChanges, effect: str) -> str:
    count = row.count(effect)
    is_dangerous = effect in ("replace", "delete")
    return "" if not count else f"**{count}**" if is_dangerous else str(count)


def _notes(row: TenantChanges) -> list[str]:
    notes: list[str] = []
    if row.losses:
        named = [_name(f"{_kind(change)} {change.name}") for change in row.losses[:3]]
        more = f" and {len(row.losses) - 3} more" if len(row.losses) > 3 else ""
        notes.append(f"**data loss**: {', '.join(named)}{more}")
    notes += _deleted_contents(row)
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


def _deleted_contents(row: TenantChanges) -> list[str]:
    lines = [line for line in row.stack.deleted_contents if line.summary != "nothing"]
    notes = [f"deletes {escape(line.summary)} with {_name(line.name)}" for line in lines[:3]]
    return [*notes, *([f"deletes the contents of {len(lines) - 3} more"] if len(lines) > 3 else [])]


def _details(listed: list[TenantChanges], budget: int) -> tuple[list[str], int]:
    """Return each tenant's details while they fit, and the number of those that do not."""
    sections: list[str] = []
    groups = [group for group in group_rows(listed) if _lines(group[0])]
    for index, group in enumerate(groups):
        named = ", ".join(row.title for row in group[:_MOST_GROUPED])
        more = f" and {len(group) - _MOST_GROUPED:,} more" if len(group) > _MOST_GROUPED else ""
        head = [f"# equal changes, shown for {group[0].title}: {named}{more}"] if len(group) > 1 else []
        lines = [clipped(line, _LONGEST_LINE) for line in [*head, *_lines(group[0])]]
        section = details(f"{_title(group)}: {_sum(group[0])}", code_block(lines, "diff"))
        budget -= size_of(section) + 2
        if budget < 0:
            return sections, sum(len(left_out) for left_out in groups[index:])
        sections.append(section)
    return sections, 0


def _sum(row: TenantChanges) -> str:
    effects = ("delete", "retain", "replace", "update", "adopt", "create")
    words = [f"{count} to {effect}" for effect in effects if (count := row.count(effect))]
    return ", ".join([*words, *(["failed"] if row.has_failed else [])]) or "see below"


def _lines(row: TenantChanges) -> list[str]:
    lines: list[str] = []
    for title, changes in group_by_part(row.changes):
        if title:
            lines.append(f"@@ {title} @@")
        lines += _lines_of_changes(changes)
    messages = [*([row.stack.error] if row.stack.error else []), *row.stack.messages]
    for message in dict.fromkeys(messages[:_MOST_MESSAGES]):
        lines += [f"! {part}" for part in message.splitlines() if part.strip()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {plural(len(lines) - _MOST_LINES, 'further line')}"]
    return [clipped(line, _LONGEST_LINE) for line in lines]


def _lines_of_changes(changes: list[ResourceChange]) -> list[str]:
    lines: list[str] = []
    for change in changes:
        loss = "  (data loss)" if change.loses_data else ""
        lines.append(f"{_SIGNS[change.effect]} {change.effect} {_kind(change)} {change.name}{loss}")
        properties = change.step.properties
        lines += [f"    {each.sign} {each.path}: {each.text}" for each in properties[:_MOST_PROPERTIES]]
        if len(properties) > _MOST_PROPERTIES:
            lines.append(f"    … {plural(len(properties) - _MOST_PROPERTIES, 'further change')}")
        elif not properties and change.step.keys:
            lines.append(f"    ~ {', '.join(change.step.keys)}")
    return lines


def _name(text: str) -> str:
    return inline_code(clipped(text, _LONGEST_NAME))


def _kind(change: ResourceChange) -> str:
    return change.type.rpartition(":")[2].rpartition("/")[2]


def _unchanged(unchanged: list[TenantChanges]) -> list[str]:
    if not unchanged:
        return []
    named = ", ".join(_name(row.title) for row in unchanged[:500])
    more = f" and {len(unchanged) - 500:,} more" if len(unchanged) > 500 else ""
    return [details(f"{plural(len(unchanged), 'tenant')} without changes", named + more)]


def _footer(facts: RunFacts) -> list[str]:
    parts: list[str] = []
    if facts.commit:
        parts.append(f"Commit {inline_code(facts.commit[:12])}")
    if facts.url.startswith(("https://", "http://")):
        parts.append(f'<a href="{escape(facts.url)}">run with the plans</a>')
    return [" · ".join(parts)] if parts else []
