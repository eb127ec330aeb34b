"""The environment of the measurements: a sandbox with the demo's tenant, in a temporary folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from demo.stage import BIN, STACK, DemoError, Stage

PROGRAMS = Path(__file__).parent / "programs"
READY_SECONDS = 60
EMBEDDED = ("--engine", "embedded")


@dataclass(frozen=True)
class Ground:
    """A running sandbox, and the demo's stack in it."""

    stage: Stage
    runtime: Path
    """A folder of mode 0700 for the sockets of warm processes, which end with it."""

    @cached_property
    def sandbox(self) -> dict[str, Any]:
        return json.loads((self.stage.sandbox / "sandbox.json").read_text())

    @cached_property
    def catalog(self) -> CatalogConfig:
        return CatalogConfig.from_json(self.stage.output("lakewright", "config", "--stack", STACK, "--format", "json"))

    def program(self, name: str, config: dict[str, str]) -> Path:
        """Return a copy of a benchmark program with its stack `bench` created and configured."""
        folder = self.copy(name, config)
        self.stage.output("lakewright", "stack", "init", "--stack", "bench", "-C", str(folder))
        return folder

    def copy(self, name: str, config: dict[str, str]) -> Path:
        """Return a copy of a benchmark program with its stack `bench` configured."""
        folder = Path(tempfile.mkdtemp(prefix=name, dir=self.stage.folder))
        shutil.copytree(PROGRAMS / name, folder, dirs_exist_ok=True)
        lines = [f"  {name.replace('_', '-')}:{key}: {json.dumps(value)}" for key, value in config.items()]
        (folder / "Pulumi.bench.yaml").write_text("\n".join(["config:", *lines]) + "\n" if lines else "config: {}\n")
        return folder

    def lakewright(self, *arguments: str) -> None:
        self.stage.output("lakewright", *arguments, *EMBEDDED)

    def run(self, command: list[str], environment: dict[str, str]) -> None:
        """Run a command with more variables, all of its output kept back."""
        whole = os.environ | self.stage.settings() | environment
        done = subprocess.run(command, cwd=self.stage.project, env=whole, check=False, capture_output=True, text=True)
        if done.returncode:
            output = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise DemoError(f"`{shlex.join(command)}` ended with {done.returncode}. {output}")

    def warm_up(self, *arguments: str) -> dict[str, str]:
        """Start the warm process of a project, and have it import what its commands need.

        Args:
            arguments: A command that changes nothing.

        Returns:
            The variables with which commands use that process.
        """
        environment = {"LAKEWRIGHT_WARM": "1", "XDG_RUNTIME_DIR": str(self.runtime)}
        folder, command = self.runtime / "lakewright", [str(BIN / "lakewright"), *arguments, *EMBEDDED]
        before = set(folder.glob("*"))
        self.run(command, environment)
        for pattern in ("*.socket", "*.modules"):
            until = time.monotonic() + READY_SECONDS
            while not set(folder.glob(pattern)) - before:
                if time.monotonic() > until:
                    raise DemoError(f"no warm process got ready within {READY_SECONDS} s")
                time.sleep(0.1)
            self.run(command, environment)
        return environment

    def pulumi(self, program: Path, *arguments: str) -> None:
        """Run the Pulumi CLI on a program, with its own state."""
        state = program.parent / f"{program.name}-cli-state"
        state.mkdir(exist_ok=True)
        mine = {
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            # Where plugins of packages that the program does not use are not to be had, it would try for seconds.
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        command = ["pulumi", "-C", str(program), *arguments]
        finished = subprocess.run(
            command, env=os.environ | self.stage.settings() | mine, check=False, capture_output=True, text=True
        )
        if finished.returncode:
            raise DemoError(f"`{shlex.join(command)}` ended with {finished.returncode}. {finished.stdout[-2000:]}")


class ColdStage(Stage):
    """A stage whose commands run by themselves: what a warm process saves is measured on its own."""

    def settings(self) -> dict[str, str]:
        """Return the variables that all commands get."""
        return super().settings() | {"LAKEWRIGHT_WARM": "0"}


@contextmanager
def ground() -> Iterator[Ground]:
    """Start a sandbox with the tenant; stop it at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="lakewright-bench-") as folder,
        tempfile.TemporaryDirectory(prefix="warm-", dir="/tmp") as runtime,
    ):
        stage = ColdStage(Path(folder))
        stage.create_project()
        stage.output("lakewright", "sandbox", "up", "--dir", str(stage.sandbox))
        try:
            stage.output("lakewright", "stack", "init", "--stack", STACK)
            stage.output("lakewright", "up", "--stack", STACK, "--yes", *EMBEDDED)
            yield Ground(stage, Path(runtime))
        finally:
            stage.output("lakewright", "sandbox", "down", "--dir", str(stage.sandbox))
