"""A table as plain text, which pipes and terminals of any width take; counts with their nouns."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.terminal.escaping import escape_line


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
