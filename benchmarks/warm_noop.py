"""`up` of the demo's stack with nothing to change: in a warm process, by itself, and with the Pulumi CLI."""

from __future__ import annotations

import os
import shutil

from benchmarks.ground import EMBEDDED, Ground
from benchmarks.measure import Row, timed
from benchmarks.stamped import running_plugins
from demo.stage import BIN, STACK

TIMES = 7
LIMIT_SECONDS = 0.8

WORDS = ("up", "--yes", "--stack", STACK)


def measure(ground: Ground) -> list[Row]:
    """Measure all in turns, and take the least time of each: other work of the machine only adds to it."""
    warm_environment = ground.warm_up(*WORDS)
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
        Row("the same beside a cold run", min(warm), min(cold), None, note="reference: without a warm process"),
    ]
    if cli:
        rows += [
            Row("the same beside the Pulumi CLI", min(warm), min(cli), None, note="its plugins run already"),
            Row("a cold run beside the Pulumi CLI", min(cold), min(cli), None, note="its plugins run already"),
        ]
    return rows


def _run(ground: Ground, environment: dict[str, str]) -> None:
    ground.run([str(BIN / "lakewright"), *WORDS, *EMBEDDED], environment)


def _run_cli(ground: Ground, attached: str) -> None:
    own = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_DEBUG_PROVIDERS": attached,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = ["pulumi", *WORDS, "--skip-preview", "--non-interactive", "--expect-no-changes"]
    ground.run(command, own)
