"""Run the commands of documentation pages as a reader does: in order, in one project folder.

A page's console blocks are run line by line. `# exit code N` after a command names the code that the page promises, and
lines below a command must be in its output, in which `...` stands for any text. Blocks with `title="FILE"` are written
to that file; a spec of a tenant replaces the spec of an existing stack file. A comment `<!-- not run: REASON -->`
before a block leaves it out.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.command_server import run_command

REPOSITORY = Path(__file__).parents[1]
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<file>[^\"]+)\")?$")
SHELL = re.compile(r"[|&;<>$*()~]")


@dataclass(frozen=True)
class PrintedBlock:
    """A fenced block of a page."""

    section: str
    language: str
    file: str
    text: str
    reason: str
    """Why the block is not run; empty if it is."""


@dataclass(frozen=True)
class PrintedCommand:
    """A command of a console block, and what the page says about its result."""

    line: str
    exit_code: int
    output: tuple[str, ...]


def read_blocks(page: Path) -> Iterator[PrintedBlock]:
    """Yield the fenced blocks of a page, with the heading above each."""
    section = reason = ""
    lines = iter(page.read_text("utf-8").splitlines())
    for line in lines:
        if line.startswith("## "):
            section = line[3:]
        elif match := NOT_RUN.search(line):
            reason = match[1]
        elif match := FENCE.match(line):
            body: list[str] = []
            for inner in lines:
                if inner.strip() == "```":
                    break
                body.append(inner.removeprefix(match["indent"]))
            yield PrintedBlock(section, match["language"], match["file"] or "", "\n".join(body) + "\n", reason)
            reason = ""


def read_commands(block: PrintedBlock) -> Iterator[PrintedCommand]:
    """Yield the commands of a console block."""
    for entry in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        line, *output = entry.rstrip().split("\n")
        command, _, comment = line.partition("  #")
        code = re.search(r"exit code (\d+)", comment)
        yield PrintedCommand(command.strip(), int(code[1]) if code else 0, tuple(text for text in output if text))


@dataclass
class Reader:
    """A user who follows pages in one folder."""

    folder: Path
    environment: dict[str, str]
    commands: list[str] = field(default_factory=list)
    """The commands that were run."""
    left_out: list[str] = field(default_factory=list)
    """The commands that were not run, because `slow_commands` has them."""
    slow_commands: tuple[str, ...] = ()
    """Beginnings of commands to leave out, such as commands that start a JVM."""

    def follow(self, page: Path, *, without: frozenset[str] = frozenset(), only: str = "") -> None:
        """Run the blocks of a page.

        Args:
            page: The page.
            without: Headings of sections to leave out.
            only: The heading of the only section to run; empty for all.

        Raises:
            AssertionError: A command did not do what the page says.
        """
        for block in read_blocks(page):
            if block.reason or block.section in without or (only and block.section != only):
                continue
            if block.file:
                self.write_file(block)
            elif block.language == "console":
                for command in read_commands(block):
                    self.run_line(command)

    def write_file(self, block: PrintedBlock) -> None:
        """Write a block to its file. The stack's other settings remain in the file of a stack."""
        file = self.folder / block.file
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and file.suffix == ".yaml" and "lakewright:tenant" in block.text:
            document = yaml.safe_load(file.read_text("utf-8"))
            document.setdefault("config", {}).update(yaml.safe_load(block.text)["config"])
            file.write_text(yaml.safe_dump(document, sort_keys=False))
        else:
            file.write_text(block.text)

    def run_line(self, command: PrintedCommand) -> None:
        """Run a command and compare its exit code and output with the page."""
        if self.slow_commands and command.line.startswith(self.slow_commands):
            self.left_out.append(command.line)
            return
        self.commands.append(command.line)
        program, *arguments = shlex.split(command.line)
        if program == "export":
            for argument in arguments:
                name, _, value = argument.partition("=")
                self.environment[name] = value
            return
        done = self._execute(command.line)
        output = (done.stdout + done.stderr).splitlines()
        assert done.returncode == command.exit_code, f"$ {command.line}\n{done.stdout}{done.stderr}"
        for text in command.output:
            # The width of a table's columns depends on all its rows.
            pattern = ".*".join(re.escape(part) for part in " ".join(text.split()).split("..."))
            assert any(re.fullmatch(pattern, " ".join(line.split())) for line in output), (
                f"$ {command.line}\nexpected: {text}\n{done.stdout}{done.stderr}"
            )

    def _execute(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line: `lakewright`, also with its output in a file, by `run_command`; other lines by the shell."""
        command, _, target = line.partition(" > ")
        if line.startswith("lakewright ") and not SHELL.search(command + target):
            done = run_command(shlex.split(command)[1:], self.folder, self.environment)
            if target:
                (self.folder / target).write_text(done.stdout)
            return done
        script = ["bash", "-euo", "pipefail", "-c", line]
        return subprocess.run(
            script, cwd=self.folder, env=self.environment, check=False, capture_output=True, text=True
        )
