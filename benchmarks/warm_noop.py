"""`up` of the demo's stack with nothing to change: in a warm process, by itself, and with the Pulumi CLI."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.ground import EMBEDDED, Ground
from benchmarks.measure import Row, timed
from benchmarks.stamped import running_plugins
from demo.stage import BIN, REPOSITORY, STACK, DemoError

TIMES = 7
LIMIT_SECONDS = 0.8
READY_SECONDS = 60.0

WORDS = ("up", "--yes", "--stack", STACK)


def measure(ground: Ground) -> list[Row]:
    """Measure all in turns, and take the least time of each: other work of the machine only adds to it."""
    warm_environment = {"LAKEWRIGHT_WARM": "1", "XDG_RUNTIME_DIR": str(ground.runtime)}
    _warm_up(ground, warm_environment)
    has_cli = shutil.which("pulumi") is not None
    warm: list[float] = []
    cold: list[float] = []
    cli: list[float] = []
    with running_plugins(ground, "aws", "kubernetes") as plugins:
        for _ in range(TIMES):
            warm.append(timed(lambda: _run(ground, warm_environment)))
            cold.append(timed(lambda: _run(ground, {"LAKEWRIGHT_WARM": "0"})))
            if has_cli:
                cli.append(timed(lambda: _run_cli(ground, plugins.attached)))
    rows = [
        Row("no-op of the demo's stack, warm", min(warm), LIMIT_SECONDS, 1.0, note="reference: the limit"),
        Row("the same beside a cold one", min(warm), min(cold), None, note="reference: without a warm process"),
    ]
    if cli:
        rows += [
            Row("the same beside the Pulumi CLI", min(warm), min(cli), None, note="its plugins run already"),
            Row("a cold one beside the Pulumi CLI", min(cold), min(cli), None, note="its plugins run already"),
        ]
    return rows


def _warm_up(ground: Ground, environment: dict[str, str]) -> None:
    """Start the warm process, and have it import what the stack needs."""
    _run(ground, environment)
    until = time.monotonic() + READY_SECONDS
    for pattern in ("*.socket", "*.modules"):
        while not list(Path(ground.runtime, "lakewright").glob(pattern)):
            if time.monotonic() > until:
                raise DemoError(f"the warm process did not get ready within {READY_SECONDS:.0f} s")
            time.sleep(0.1)
        _run(ground, environment)


def _run(ground: Ground, environment: dict[str, str]) -> None:
    _check([str(BIN / "lakewright"), *WORDS, *EMBEDDED], ground.stage.settings() | environment)


def _run_cli(ground: Ground, attached: str) -> None:
    own = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_DEBUG_PROVIDERS": attached,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = ["pulumi", *WORDS, "--skip-preview", "--non-interactive", "--expect-no-changes"]
    _check(command, ground.stage.settings() | own)


def _check(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise DemoError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
