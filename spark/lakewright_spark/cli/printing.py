"""Print tables and messages of commands, without markup in names."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.table import Table

_WIDE = 10_000
"""Width of output that is not read in a terminal, so that each row is a single line."""


def columns(*names: str, fold: tuple[str, ...] = ()) -> Table:
    """Return an empty table. In a narrow terminal, the columns to fold continue in the next line."""
    table = Table(box=None, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=name not in fold, overflow="fold")
    return table


def show(table: Table) -> None:
    """Print a table."""
    # Without markup: a table's name may hold brackets.
    Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE).print(table)


def console_of_errors() -> Console:
    """Return a console on standard error that prints names without markup."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def complain(text: str) -> None:
    """Print a line in red on standard error; log tools search by line."""
    console_of_errors().print(text, style="red", soft_wrap=True)


def note(text: str | None) -> None:
    """Print an informational line on standard error; None prints nothing."""
    if text:
        console_of_errors().print(text, soft_wrap=True)


def flush() -> None:
    """Flush the output. Otherwise Python prints an error at its exit if the reader has ended, such as `head`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
