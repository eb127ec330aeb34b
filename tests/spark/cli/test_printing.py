"""Commands print complete, unchanged text: in narrow terminals, in logs and for other programs."""

from __future__ import annotations

import re

import pytest
from lakewright_spark.cli import printing

NAME = "sales.crm.`a table [bold]whose name[/bold] :smile: is longer than any terminal is wide`" + "x" * 60


def test_row_is_one_line_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = printing.columns("run", "table", "reason", fold=("table", "reason"))
    table.add_row("0123abcd", NAME, "3 files are due")
    printing.show(table)
    printing.complain(f"no table {NAME}")
    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()] == [
        ["run", "table", "reason"],
        ["0123abcd", *NAME.split(), "3", "files", "are", "due"],
    ]
    assert printed.err.splitlines() == [f"no table {NAME}"]


def test_narrow_terminal_folds_long_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    table = printing.columns("", "live", "growth", fold=("",))
    table.add_row(NAME, "16.9 kB", "+1.0 kB since 2026-11-01")
    printing.show(table)
    lines = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 60
    numbers = ["16.9 kB", "+1.0 kB since 2026-11-01"]
    assert all(number in lines[1] for number in numbers)
    name = " ".join(lines[1:])
    for number in numbers:
        name = name.replace(number, "")
    assert "".join(name.split()) == "".join(NAME.split())
