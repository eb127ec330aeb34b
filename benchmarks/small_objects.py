"""300 small objects (100 projects, 200 namespaces): up, preview with refresh, destroy, beside the Pulumi CLI."""

from __future__ import annotations

import shutil

from benchmarks.ground import Ground
from benchmarks.measure import Row, timed

TARGET = 1 / 3
RECORDED = {"up": 8.3, "preview with refresh": 4.8, "destroy": 5.7}
"""Seconds that the CLI took for this on 2 cores, for where it is not installed."""


def measure(ground: Ground) -> list[Row]:
    warehouse = ground.catalog.warehouses[0]
    config = {"endpoint": ground.sandbox["lakekeeper"]["endpoint"], "warehouse": warehouse.id}
    program = ground.program("small_objects", config)
    where = ("--stack", "bench", "-C", str(program))
    ours = {
        "up": timed(lambda: ground.lakewright("up", "--yes", *where)),
        "preview with refresh": timed(lambda: ground.lakewright("preview", "--refresh", "--expect-no-changes", *where)),
        "destroy": timed(lambda: ground.lakewright("destroy", "--yes", *where)),
    }
    reference, note = RECORDED, "reference recorded on another machine with 2 cores"
    if shutil.which("pulumi"):
        ground.pulumi(program, "stack", "init", "bench")
        plain = ("--stack", "bench", "--non-interactive")
        now = ("--yes", "--skip-preview")
        reference = {
            "up": timed(lambda: ground.pulumi(program, "up", *now, *plain)),
            "preview with refresh": timed(lambda: ground.pulumi(program, "preview", "--refresh", *plain)),
            "destroy": timed(lambda: ground.pulumi(program, "destroy", *now, *plain)),
        }
        note = "reference: the Pulumi CLI in this run"
    return [Row(f"300 objects: {verb}", ours[verb], reference[verb], TARGET, note=note) for verb in ours]
