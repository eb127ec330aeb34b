"""Writes docs/reference/commands.md: every command of both programs with its arguments and options. `make docs`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from lakewright.cli.app import app, load_command
from lakewright_spark.cli import app as spark_app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
NOTICE = "<!-- Written by scripts/command_page.py (`make docs`): change the commands instead. -->"
INTRODUCTION = """\
`lakewright` declares and operates tenants; `lakewright-spark` runs where Spark or a job runs. `COMMAND --help` prints
the same text. Commands with `--json` print [one document](json.md). See also the [exit codes](exit-codes.md).
`lakewright completion bash|zsh|fish` prints the completion script of a shell.
"""


def build_page() -> str:
    """Return the text of the page."""
    root: Any = typer.main.get_command(app)
    names = root.list_commands(None)
    spark_root: Any = typer.main.get_command(spark_app)
    programs = [
        ("lakewright", root.help, {name: load_command(name) for name in names}),
        ("lakewright-spark", spark_app.info.help, dict(spark_root.commands)),
    ]
    for name, command in programs[0][2].items():
        command.help = command.help or root.get_command(None, name).help
    parts = [f"# Which commands are there?\n\n{NOTICE}\n\n{INTRODUCTION}"]
    for program, text, commands in programs:
        rows = [f"| {_format_link(f'{program} {name}')} | {_first_line(commands[name].help)} |" for name in commands]
        parts.append(
            "\n".join([f"## {program}", "", _clean(text), "", "| command | purpose |", "|---|---|", *rows, ""])
        )
        for name in commands:
            parts += _format_command(f"{program} {name}", commands[name])
    return "\n".join(parts)


def _format_command(path: str, command: Any) -> Iterator[str]:
    """Yield the section of a command, and the sections of a group's commands."""
    if hasattr(command, "commands") and command.commands:
        yield f"### {path}\n\n{_clean(command.help)}\n"
        for name, child in command.commands.items():
            yield from _format_command(f"{path} {name}", child)
        return
    lines = [f"### {path}", "", _clean(command.help), ""]
    rows = list(_format_parameters(command))
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    yield "\n".join(lines)


def _format_parameters(command: Any) -> Iterator[str]:
    """Yield a row for each argument and option, with the texts of `--help`."""
    context = command.context_class(command)
    for parameter in command.params:
        name, text = parameter.get_help_record(context) or ("", "")
        if name:
            cells = (f"`{name}`", " ".join(text.split()))
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _format_link(path: str) -> str:
    return f"[`{path}`](#{path.replace(' ', '-')})"


def _clean(text: str | None) -> str:
    """Return a help text as Markdown, with its example in a block."""
    lines = inspect.cleandoc(text or "").replace("\b", "").splitlines()
    examples = [line.partition("Example: ")[2] for line in lines if line.startswith("Example: ")]
    body = "\n".join(line for line in lines if not line.startswith("Example: ")).strip()
    return body + "".join(f"\n\n```console\n$ {example}\n```" for example in examples)


def _first_line(text: str | None) -> str:
    return inspect.cleandoc(text or "").partition("\n")[0]


def main() -> None:
    """Write the page."""
    PAGE.write_text(build_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
