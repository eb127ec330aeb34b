"""Lines of plain text, which pipes and terminals of any width take: results of checks, tables, counts with nouns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class CheckLine:
    """One check."""

    status: str
    """A word, such as `ok`."""
    color: str
    subject: str
    """The subject of the check."""
    evidence: str
    remedy: str = ""
    """How to fix it."""

    @property
    def text(self) -> str:
        """The line without its status."""
        parts = [f"{self.subject}: {self.evidence}" if self.evidence else self.subject]
        return escape_line("; to fix it: ".join([*parts, *([self.remedy] if self.remedy else [])]))


def print_check_lines(console: Console, checks: Sequence[CheckLine]) -> None:
    """Print a line for each check.

    Nothing is cut. A terminal gets lines that are wrapped and indented to the width of the status; pipes and logs get
    exactly one line for each check.
    """
    from rich.table import Table  # noqa: PLC0415 - slow to load
    from rich.text import Text  # noqa: PLC0415

    width = max((len(check.status) for check in checks), default=0)
    for check in checks:
        status = Text(check.status.ljust(width), check.color)
        if not console.is_terminal:
            console.print(Text.assemble(status, "  ", check.text), soft_wrap=True, highlight=False)
            continue
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(no_wrap=True)
        row.add_column(overflow="fold")
        row.add_row(status, Text(check.text))
        console.print(row, highlight=False)


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Return the lines of a table with aligned columns."""
    table = [[escape_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def plural(count: int, noun: str) -> str:
    """Return `1 stack`, `2 stacks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
