"""300 small objects (100 projects, 200 namespaces): up, preview with refresh, destroy, beside the Pulumi CLI."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.ground import EMBEDDED, Ground
from benchmarks.measure import Row, measure_seconds
from demo.stage import BIN

ROUNDS = 3
TARGET = 0.25
RECORDED = {"up": 8.3, "preview with refresh": 4.8, "destroy": 5.7}
"""Seconds of the CLI on 2 cores, for machines without it."""

Times = dict[str, float]
COLD = {"LAKEWRIGHT_WARM": "0"}


def measure(ground: Ground) -> list[Row]:
    """Measure both engines in turns; return the least time of each, since other work only adds to it."""
    warehouse = ground.catalog.warehouses[0]
    config = {"endpoint": ground.sandbox["lakekeeper"]["endpoint"], "warehouse": warehouse.id}
    program = ground.program("small_objects", config)
    has_cli = shutil.which("pulumi") is not None
    if has_cli:
        ground.pulumi(program, "stack", "init", "bench")
    warm_environment = ground.warm_up("preview", "--stack", "bench", "-C", str(program))
    cold: list[Times] = []
    warm: list[Times] = []
    theirs: list[Times] = []
    for _ in range(ROUNDS):
        cold.append(_run_embedded(ground, program, COLD))
        warm.append(_run_embedded(ground, program, warm_environment))
        if has_cli:
            theirs.append(_run_cli(ground, program))
    reference = _least(theirs) if theirs else RECORDED
    note = f"the Pulumi CLI in turns, least of {ROUNDS}" if theirs else "reference recorded on another machine"
    return [
        Row(f"300 objects: {verb}{suffix}", seconds, reference[verb], TARGET, note=note)
        for suffix, ours in (("", cold), (", warm", warm))
        for verb, seconds in _least(ours).items()
    ]


def _run_embedded(ground: Ground, program: Path, environment: dict[str, str]) -> Times:
    def run(*arguments: str) -> float:
        return measure_seconds(lambda: ground.run([str(BIN / "lakewright"), *arguments, *EMBEDDED], environment))

    stack_options = ("--stack", "bench", "-C", str(program))
    return {
        "up": run("up", "--yes", *stack_options),
        "preview with refresh": run("preview", "--refresh", "--expect-no-changes", *stack_options),
        "destroy": run("destroy", "--yes", *stack_options),
    }


def _run_cli(ground: Ground, program: Path) -> Times:
    plain = ("--stack", "bench", "--non-interactive")
    now = ("--yes", "--skip-preview")
    return {
        "up": measure_seconds(lambda: ground.pulumi(program, "up", *now, *plain)),
        "preview with refresh": measure_seconds(lambda: ground.pulumi(program, "preview", "--refresh", *plain)),
        "destroy": measure_seconds(lambda: ground.pulumi(program, "destroy", *now, *plain)),
    }


def _least(rounds: list[Times]) -> Times:
    return {verb: min(times[verb] for times in rounds) for verb in rounds[0]}
