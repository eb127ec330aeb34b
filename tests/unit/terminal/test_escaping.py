"""Escapes of texts from servers, on streams and consoles."""

from __future__ import annotations

import ast
import io
import json
import sys
import unicodedata
from pathlib import Path
from typing import TextIO, cast

import pytest
from lakewright.terminal.console import open_console
from lakewright.terminal.escaping import escape_line, escape_text, indent_continuation
from lakewright.terminal.streams import StandardStream, escape_standard_streams
from lakewright.terminal.text_lines import format_table
from rich.table import Table
from rich.text import Text

OSC_52 = "\x1b]52;c;cm0gLXJm\x07"
CSI = "\x9b2J\x1b[2K"
COMPONENTS = Path(__file__).parents[3] / "components" / "lakewright"
BYPASSES = {"sys.stdout.buffer", "sys.stderr.buffer", "rich.print", "os.writev"}


def write_escaped(*parts: str) -> str:
    stream = io.StringIO()
    escaping = StandardStream(cast("TextIO", stream))
    for part in parts:
        assert escaping.write(part) == len(part)
    return stream.getvalue()


def test_control_characters_are_escaped() -> None:
    every = "".join(map(chr, [*range(0x110000)]))

    escaped = escape_text(every)

    kinds = {unicodedata.category(char) for char in escaped if char not in "\t\n"}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not [char for char in "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\U000e0041" if char in escaped]
    assert escape_text(f"{OSC_52}{CSI}") == "\\u001b]52;c;cm0gLXJm\\u0007\\u009b2J\\u001b[2K"
    assert escape_text(escaped) == escaped


def test_plain_text_is_unchanged() -> None:
    text = "Zürich 東京 😀\n  urn:pulumi:a::b\t5 %\r"[:-1]

    assert escape_text(text) == text


@pytest.mark.parametrize(
    "line",
    [
        "::stop-commands::token",
        "  \t::error::x",
        "\u3000::error::x",
        "one\n::add-mask::x",
        "log ##[error]x",
        "##vso[task.setvariable variable=x]y",
        "##TeamCity[buildProblem]",
    ],
)
def test_commands_of_ci_systems_are_escaped(line: str) -> None:
    escaped = escape_text(line)

    assert not any(part.lstrip().startswith("::") for part in escaped.split("\n"))
    assert not any(mark in escaped.lower() for mark in ("##[", "##vso[", "##teamcity["))
    assert json.loads(f'"{escaped}"', strict=False) == line


def test_line_breaks_of_names_are_escaped() -> None:
    assert escape_line("a\n\tb\r") == "a\\n\\tb\\u000d"
    assert format_table(("NAME",), [("a\nerror: forged",)])[1] == "a\\nerror: forged"
    assert indent_continuation("first\nerror: forged") == "first\n  error: forged"


def test_streams_know_where_a_line_begins() -> None:
    assert write_escaped("found ", "::x") == "found ::x"
    assert write_escaped("found\n", "  ", "::x") == "found\n  \\u003a:x"
    assert write_escaped("\n:", ":x") == "\n:\\u003ax"


def test_json_keeps_its_values() -> None:
    document = {"name": f"{OSC_52}{CSI}\u202e\U000e0041\n::x ##[y]"}

    printed = write_escaped(json.dumps(document, ensure_ascii=False, indent=2), "\n")

    assert json.loads(printed) == document
    assert "\u202e" not in printed


def test_standard_streams_escape_and_return(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with escape_standard_streams():
        print(OSC_52)
        print("::error::x", file=sys.stderr)
        assert sys.stdout.encoding == before[0].encoding

    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("\\u001b]52;c;cm0gLXJm\\u0007\n", "\\u003a:error::x\n")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_console_escapes_texts_but_not_its_colors(*, is_terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with escape_standard_streams():
        console = open_console(force_terminal=is_terminal, color_system="standard", width=80)
        table = Table("name")
        table.add_row(Text(OSC_52, "red"))
        console.print(table)
        console.print(f"{CSI}\u202e")
        with console.status(Text(OSC_52)):
            console.print("::error::x")
        console.file.write("" if is_terminal else OSC_52)
    printed = capsys.readouterr().out

    assert ("\x1b[31m" in printed) is is_terminal
    assert "\\u001b]52" in printed
    assert not [sequence for sequence in ("\x1b]", "\x07", "\x9b", "\u202e", "\n::", "\x1b[2J") if sequence in printed]


def test_only_escaping_consoles_and_streams_are_used() -> None:
    """A command that opens its own console, or writes bytes, would print unescaped text."""
    opened = [
        f"{file.relative_to(COMPONENTS)}:{node.lineno}"
        for file in COMPONENTS.rglob("*.py")
        if file.parent.name != "terminal"
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in BYPASSES)
    ]

    assert opened == []
