"""Each command that a message, a docstring or a page prints is one that the command line takes."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from lakewright.cli import main
from lakewright.cli.app import app
from lakewright_spark.cli import app as spark_app

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("components/lakewright", "engine/lakewright_engine", "spark/lakewright_spark", "sandbox/lakewright_sandbox")
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("[!.]*/**/*.md"))]

IN_TEXT = re.compile(r"`((?:lakewright|lakewright-spark|pulumi) [a-z-][^`]*)`")
EXAMPLE = re.compile(r"Example: (lakewright(?:-spark)? .*)")
WHOLE = re.compile(r"\A(lakewright [a-z-]+[^`]* --[^`]*)\Z")
"""A message that is built around its command."""
MAY_PRINT = re.compile(r"(?:lakewright|lakewright-spark|pulumi) ")
"""What each source with a command contains."""
IN_CONSOLE = re.compile(r"^\$ ((?:[A-Z_]+=\S+ )*)((?:lakewright|lakewright-spark|pulumi) .*)$", re.MULTILINE)
SYNOPSIS = re.compile(r"\[|\.\.\.|\w\\?\|\w|\bCOMMAND\b")
"""What pages write for a choice of words."""
SHELL = re.compile(r"\s(?:\||>|<|&&|;|#)(?:\s|$).*| \$\(.*|\s2?>.*")
"""What a shell takes: pipes, redirections and comments."""

PLACEHOLDERS = {
    "' '.join(command)": "usage",
    "' '.join(kind.command)": "fleet list",
    "words[0]": "up",
    "arguments[0]": "drift",
    "preview.command": "up",
    "report.command": "up",
    "command": "up",
    "context.command_path": "lakewright up",
    "authz": "openfga",
    "rest": "KEY",
}
"""What stands for parts of messages that are not one word; other parts are the stack acme."""
HARMLESS = {
    "stack ls",
    "stack output",
    "stack history",
    "stack export",
    "stack select",
    "state ls",
    "config",
    "fleet list",
    "spec schema",
    "spec explain",
    "external-ids",
}
"""Commands that change nothing and need no server."""


@dataclass(frozen=True)
class Printed:
    """A command, and where it is printed."""

    text: str
    position: str

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(shlex.split(SHELL.sub("", self.text)))


def literal(node: ast.expr) -> str | None:
    """Return the text of a string, with its parts that vary filled in; None for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    parts: list[str] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue) and "".join(parts)[-1:].isalpha():
            continue  # an option that may be absent, with its space
        if isinstance(part, ast.FormattedValue):
            parts.append(PLACEHOLDERS.get(ast.unparse(part.value), "acme"))
        else:
            parts.append(literal(part) or "")
    return "".join(parts)


def commands_of_sources() -> Iterator[Printed]:
    for package in PACKAGES:
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            if not MAY_PRINT.search(source):
                continue
            tree = ast.parse(source)
            inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
            for node in ast.walk(tree):
                if not isinstance(node, ast.expr) or id(node) in inner or (text := literal(node)) is None:
                    continue
                position = f"{file.relative_to(REPOSITORY)}:{node.lineno}"
                for match in (*IN_TEXT.finditer(text), *EXAMPLE.finditer(text), *WHOLE.finditer(text)):
                    yield Printed(match[1].strip(), position)


def commands_of_pages() -> Iterator[Printed]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", "    ")
        for number, line in enumerate(text.splitlines(), 1):
            position = f"{page.relative_to(REPOSITORY)}:{number}"
            yield from (Printed(match[2], position) for match in IN_CONSOLE.finditer(line))
            yield from (
                Printed(match[1], position) for match in IN_TEXT.finditer(line) if not SYNOPSIS.search(match[1])
            )


@functools.cache
def build_command(program: str) -> Any:
    return typer.main.get_command(app if program == "lakewright" else spark_app)


@functools.cache
def parse(command_words: tuple[str, ...]) -> str:
    """Parse a command with the real parser. Return the names of its groups and of itself."""
    program, *arguments = command_words
    command: Any = build_command(program)
    path: list[str] = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("LAKEWRIGHT_STACK", "acme")
        context, name = None, program
        while True:
            is_group = hasattr(command, "resolve_command")
            if not arguments and path:  # the mention of a command, without what it needs
                return " ".join(path)
            try:
                context = command.make_context(name, list(arguments), parent=context)
            except typer.Exit:  # --help and --version
                return " ".join(path)
            remaining = [*getattr(context, "_protected_args", []), *context.args]
            if not is_group or not remaining:
                return " ".join(path)
            name, command, arguments = command.resolve_command(context, remaining)
            path.append(str(name))


@pytest.fixture(scope="module")
def commands() -> list[Printed]:
    commands = [*commands_of_sources(), *commands_of_pages()]
    assert len(commands) > 300
    return commands


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with the stack acme."""
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\nstackConfigDir: tenants\n")
    (tmp_path / "__main__.py").write_text("")
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "demo")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["stack", "init", "acme"])
    return tmp_path


def test_printed_commands_are_parsed(commands: list[Printed], project: Path) -> None:
    problems: list[str] = []
    for command in commands:
        if command.words[0] == "pulumi":
            continue
        try:
            parse(command.words)
        except Exception as error:  # noqa: BLE001 - each is listed
            problems.append(f"{command.position}: {command.text}: {getattr(error, 'message', error)}")
    assert problems == []


def test_harmless_printed_commands_run(
    commands: list[Printed], project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWRIGHT_STACK", "acme")
    lines = {" ".join(command.words): command.words for command in commands if command.words[0] == "lakewright"}
    ran: set[str] = set()
    for line, command_words in lines.items():
        if (name := parse(command_words)) not in HARMLESS or "--format" in command_words:
            continue
        with pytest.raises(SystemExit):
            main([*command_words[1:]])
        errors = capsys.readouterr().err
        assert "--help`" not in errors, f"{line}: {errors}"
        ran.add(name)
    assert len(ran) > 7


@pytest.mark.pulumi_cli
@pytest.mark.skipif(shutil.which("pulumi") is None, reason="needs the Pulumi CLI")
def test_the_pulumi_cli_takes_its_printed_commands(commands: list[Printed], tmp_path: Path) -> None:
    problems: list[str] = []
    for command_words in {command.words for command in commands if command.words[0] == "pulumi"}:
        done = subprocess.run([*command_words, "--help"], cwd=tmp_path, check=False, capture_output=True, text=True)
        help_text = done.stdout + done.stderr
        # An unknown command prints the help of the group above it.
        if done.returncode or not re.search(rf"^\s+pulumi {re.escape(command_words[1])}\b", help_text, re.MULTILINE):
            problems.append(f"{' '.join(command_words)}: {help_text[:200]}")
    assert problems == []
