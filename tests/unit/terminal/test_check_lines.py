"""One line for each check, complete at any width."""

from __future__ import annotations

import pytest
from lakewright.terminal.console import open_console
from lakewright.terminal.text_lines import CheckLine, print_check_lines

EVIDENCE = "PUT 403 AccessDenied at https://lakehouse.example/" + "a-very-long-key/" * 12
CHECKS = [
    CheckLine("ok", "green", "table: unit/executions: write a table", "vended: PUT 200, commit 200"),
    CheckLine("not proven", "red", "other-prefixes: write to [tenant] globex", EVIDENCE, "restart\nforged: it"),
]


def test_log_has_exactly_one_line_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    print_check_lines(open_console(width=40), CHECKS)

    assert capsys.readouterr().out.splitlines() == [
        "ok          table: unit/executions: write a table: vended: PUT 200, commit 200",
        f"not proven  other-prefixes: write to [tenant] globex: {EVIDENCE}; to fix it: restart\\nforged: it",
    ]


def test_terminal_of_80_columns_shows_all_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    print_check_lines(open_console(width=80, force_terminal=True, color_system=None), CHECKS)

    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert all(line[:12].strip() in ("", "ok", "not proven") for line in lines)
    assert EVIDENCE.replace(" ", "") in "".join(line[12:].replace(" ", "") for line in lines)
    assert "…" not in "".join(lines)
