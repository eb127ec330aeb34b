"""Commands on the embedded engine with running plugins, and their seconds without start-up."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ground import EMBEDDED, Ground
from benchmarks.measure import measure_seconds
from demo.stage import REPOSITORY, DemoError

HERE = Path(__file__).parent
PLUGINS = {
    "aws": ("-m", "lakewright_sandbox.providers", "aws"),
    "kubernetes": ("-m", "lakewright_sandbox.providers", "kubernetes"),
    "pulumi-python": (str(HERE / "dynamic_plugin.py"),),
}


@dataclass(frozen=True)
class Times:
    """Seconds of a command: the total, and without the start of Python and imports."""

    whole: float
    work: float


@dataclass(frozen=True)
class Stamped:
    """Runs commands with plugins that are running and warm."""

    ground: Ground
    attached: str

    def run(self, *arguments: str) -> Times:
        file = self.ground.stage.folder / "stamps"
        settings = self.ground.stage.settings() | {"PULUMI_DEBUG_PROVIDERS": self.attached}
        command = [sys.executable, str(HERE / "stamped_cli.py"), str(file), *arguments, *EMBEDDED]
        done: list[subprocess.CompletedProcess[str]] = []
        environment = os.environ | settings
        whole = measure_seconds(
            lambda: done.append(
                subprocess.run(
                    command, cwd=self.ground.stage.project, env=environment, check=False, capture_output=True, text=True
                )
            )
        )
        if done[0].returncode:
            raise DemoError(f"{' '.join(arguments)} ended with {done[0].returncode}: {done[0].stdout[-2000:]}")
        return Times(whole, float(file.read_text()))


@contextlib.contextmanager
def run_plugins(ground: Ground, *names: str) -> Iterator[Stamped]:
    """The plugins, started and waiting as PULUMI_DEBUG_PROVIDERS has it."""
    with contextlib.ExitStack() as running:
        ports: list[str] = []
        for name in names:
            environment = os.environ | ground.stage.settings()
            command = [sys.executable, "-u", *PLUGINS[name]]  # the SDK does not flush its port
            plugin = running.enter_context(
                subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True)
            )
            running.callback(plugin.kill)
            assert plugin.stdout is not None
            ports.append(f"{name}:{int(plugin.stdout.readline())}")
        yield Stamped(ground, ",".join(ports))
