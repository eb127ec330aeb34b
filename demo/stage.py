"""The demo's folder, environment, commands and times."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
STACK = "demo"


class DemoError(Exception):
    """A claim of the demo does not hold."""


@dataclass
class Stage:
    """One run of the demo."""

    folder: Path
    console: Console = field(default_factory=lambda: Console(highlight=False))
    times: dict[str, float] = field(default_factory=dict)

    @property
    def sandbox(self) -> Path:
        """Folder of the sandbox."""
        return self.folder / "sandbox"

    @property
    def project(self) -> Path:
        """Folder of the project: the repository's program, with the demo's tenant alone."""
        return self.folder / "project"

    @property
    def state(self) -> Path:
        """Return the folder of the stack's state."""
        return self.folder / "state"

    @property
    def catalog(self) -> Path:
        """Return the path of the generated catalog configuration, the job's only input."""
        return self.folder / "catalog.json"

    @property
    def spark_log(self) -> Path:
        """File for Spark's log."""
        return self.folder / "spark.log"

    @property
    def leaves(self) -> set[str]:
        """Return the files that a run leaves in the folder."""
        return {path.name for path in (self.sandbox, self.project, self.state, self.catalog, self.spark_log)}

    def create_project(self) -> None:
        """Create the folders of state and project, and copy the tenant's spec into the project."""
        self.state.mkdir(parents=True)
        (self.project / "tenants").mkdir(parents=True)
        for file in ("Pulumi.yaml", "__main__.py"):
            shutil.copy(REPOSITORY / file, self.project)
        shutil.copytree(REPOSITORY / "environments", self.project / "environments")
        shutil.copy(REPOSITORY / "demo" / f"Pulumi.{STACK}.yaml", self.project / "tenants")
        (self.project / ".venv").symlink_to(sys.prefix)

    def settings(self) -> dict[str, str]:
        """Return the environment of the demo's commands. The passphrase protects a sandbox's temporary state."""
        return {
            "LAKEWRIGHT_SANDBOX": str(self.sandbox),
            "PULUMI_BACKEND_URL": self.state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "demo",
        }

    @contextmanager
    def act(self, title: str) -> Iterator[None]:
        """Print the title of an act and measure its time."""
        self.console.print()
        self.console.print(Rule(f"[bold]{len(self.times) + 1}. {title}", align="left", style="cyan"))
        began = time.monotonic()
        yield
        self.times[title] = time.monotonic() - began

    def run(self, *command: str, log: Path | None = None) -> None:
        """Run a command and print its output; its stderr is written to `log`, if given. Raise DemoError if it fails."""
        self.console.print(
            f"[bold]$ {shlex.join(word.removeprefix(f'{REPOSITORY}/') for word in command)}", soft_wrap=True
        )
        with ExitStack() as open_files:
            side = open_files.enter_context(log.open("wb")) if log else None
            code = subprocess.run(
                self._command(command),
                cwd=self._find_folder(command),
                env=self._environment(),
                stderr=side,
                check=False,
            ).returncode
        if code:
            message = log.read_text(errors="replace")[-3000:] if log else "See its output above."
            raise DemoError(f"`{shlex.join(command)}` ended with {code}. {message}")

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command whose output the demo reads."""
        return subprocess.Popen(
            self._command(command),
            cwd=self._find_folder(command),
            env=self._environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def output(self, *command: str) -> str:
        """Return the output of a command. Raise DemoError if it fails."""
        process = self.start(*command)
        out, _ = process.communicate()
        if process.returncode:
            raise DemoError(f"`{shlex.join(command)}` ended with {process.returncode}. {out[-2000:]}")
        return out

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text)

    def say_done(self, text: str) -> None:
        """Print a line with a check mark."""
        self.console.print(f"[green]✓[/] {text}")

    def programme(self) -> Table:
        """Return the acts and their seconds."""
        table = Table("act", "seconds", box=None, header_style="bold")
        for title, seconds in self.times.items():
            table.add_row(title, f"{seconds:.1f}")
        table.add_row("[bold]together", f"[bold]{sum(self.times.values()):.1f}")
        return table

    def _command(self, command: tuple[str, ...]) -> list[str]:
        return [str(BIN / command[0]), *command[1:]]

    def _find_folder(self, command: tuple[str, ...]) -> Path:
        """Return the folder in which a command runs: the project, if there is one and the command needs it."""
        return self.project if command[0] == "lakewright" and self.project.is_dir() else REPOSITORY

    def _environment(self) -> dict[str, str]:
        # Commands get no AWS_* variables: the stack's identity is in the environment file, and the job has none.
        mine = {
            key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_", "LAKEWRIGHT_"))
        }
        inherited = {key: os.environ[key] for key in ("LAKEWRIGHT_IVY",) if key in os.environ}
        return mine | inherited | self.settings() | {"PYTHONUNBUFFERED": "1"}
