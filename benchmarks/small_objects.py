"""300 small objects (100 projects, 200 namespaces): up, preview with refresh, destroy, beside the Pulumi CLI."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.measure import Row, timed

ROUNDS = 3
TARGET = 0.25
RECORDED = {"up": 8.3, "preview with refresh": 4.8, "destroy": 5.7}
"""Seconds of the CLI on 2 cores, for machines without it."""

Times = dict[str, float]


def measure(ground: Ground) -> list[Row]:
    """Measure both engines in turns; return the least time of each, since other work only adds to it."""
    warehouse = ground.catalog.warehouses[0]
    config = {"endpoint": ground.sandbox["lakekeeper"]["endpoint"], "warehouse": warehouse.id}
    program = ground.program("small_objects", config)
    has_cli = shutil.which("pulumi") is not None
    if has_cli:
        ground.pulumi(program, "stack", "init", "bench")
    ours: list[Times] = []
    theirs: list[Times] = []
    for _ in range(ROUNDS):
        ours.append(_run_embedded(ground, program))
        if has_cli:
            theirs.append(_run_cli(ground, program))
    reference = _least(theirs) if theirs else RECORDED
    note = f"the Pulumi CLI in turns, least of {ROUNDS}" if theirs else "reference recorded on another machine"
    return [
        Row(f"300 objects: {verb}", seconds, reference[verb], TARGET, note=note)
        for verb, seconds in _least(ours).items()
    ]


def _run_embedded(ground: Ground, program: Path) -> Times:
    where = ("--stack", "bench", "-C", str(program))
    return {
        "up": timed(lambda: ground.lakewright("up", "--yes", *where)),
        "preview with refresh": timed(lambda: ground.lakewright("preview", "--refresh", "--expect-no-changes", *where)),
        "destroy": timed(lambda: ground.lakewright("destroy", "--yes", *where)),
    }


def _run_cli(ground: Ground, program: Path) -> Times:
    plain = ("--stack", "bench", "--non-interactive")
    now = ("--yes", "--skip-preview")
    return {
        "up": timed(lambda: ground.pulumi(program, "up", *now, *plain)),
        "preview with refresh": timed(lambda: ground.pulumi(program, "preview", "--refresh", *plain)),
        "destroy": timed(lambda: ground.pulumi(program, "destroy", *now, *plain)),
    }


def _least(rounds: list[Times]) -> Times:
    return {verb: min(times[verb] for times in rounds) for verb in rounds[0]}
