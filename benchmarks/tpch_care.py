"""Table care of TPC-H after updates and deletes: predicted against measured gain and cost, and equal contents."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.job_runner import session_properties
from lakewright_spark.policies.model import JOBS, CompactionPolicy, JobName, TablePolicies
from lakewright_spark.scheduler.run_log.records import GB_HOURS, PREDICTED, RunRecord
from lakewright_spark.scheduler.runner import FAIR, MaintenanceRunner
from lakewright_spark.scheduler.supervisor import Limits
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.session.builder import Workload, spark_session
from pydantic import ByteSize

from benchmarks.ground import Ground
from benchmarks.measure import Row
from benchmarks.tpch import CHANGED, TABLES, Tpch

SCALE = float(os.environ.get("LAKEWRIGHT_BENCH_TPCH_SCALE", "1"))
NIGHTS, ROUNDS = 3, 3
TARGET = 2.0
LATER = timedelta(days=10)
"""Time between the stream and the last night, so that snapshots expire."""
NAMESPACE = "tpch"
COMPACTION = CompactionPolicy(target_file_size=ByteSize(max(1, round(32 * SCALE)) * 2**20))


@dataclass(frozen=True)
class Care:
    """A run of a job on a table in one of the nights."""

    night: int
    run: RunRecord

    @property
    def predicted(self) -> dict[str, Any]:
        return self.run.metrics[PREDICTED]

    @property
    def files_saved(self) -> int:
        return self.run.metrics["rewritten"] - self.run.metrics["added"]


def maintain(tpch: Tpch, config: CatalogConfig, night: int, later: timedelta) -> Iterator[Care]:
    """Run every due job of a night, and check the contents after each job."""
    filters = (re.compile(NAMESPACE), None)

    def build_runner(job: JobName) -> MaintenanceRunner:
        return MaintenanceRunner(
            config,
            Filters(*filters, jobs=(job,)),
            Limits(parallel=1),  # a job that waits for another table's tasks would take longer than its own work
            session=tpch.spark,
            clock=lambda: datetime.now(UTC) + later,
        )

    for job in JOBS:
        explained = {
            table.facts.table: table.due[0].prediction
            for plan in build_runner(job).decide().plans
            for table in plan.tables
            if table.due
        }
        outcome = build_runner(job).run()
        if error := outcome.error():
            raise error
        for run in outcome.runs.values():
            explanation = explained[run.table]
            assert explanation is not None
            assert explanation.to_json() == run.metrics[PREDICTED], "`--explain` says what is recorded"
            yield Care(night, run)
        if outcome.runs:
            tpch.check(f"{job} of night {night}")


def care(tpch: Tpch, config: CatalogConfig, compaction: CompactionPolicy, nights: int, rounds: int) -> list[Care]:
    """Load the tables, change them in rounds before each night, and maintain them. Raises AssertionError."""
    tpch.load()
    tpch.check("the load", TABLES)
    properties = ", ".join(
        f"'{key}' = '{text}'" for key, text in TablePolicies(compaction=compaction).properties().items()
    )
    for table in CHANGED:
        tpch.spark.sql(f"ALTER TABLE {tpch.namespace}.{table} SET TBLPROPERTIES ({properties})")
    done: list[Care] = []
    for night in range(1, nights + 1):
        for _ in range(rounds):
            tpch.change()
        tpch.check(f"the changes before night {night}")
        done += maintain(tpch, config, night, LATER if night == nights else timedelta())
    tpch.check("all nights", TABLES)
    return done


def measure(ground: Ground) -> list[Row]:
    """Maintain TPC-H in a process of its own, whose heap is that of a maintenance run."""
    config = ground.catalog.select_warehouses([ground.catalog.warehouses[0].name])
    command = [sys.executable, "-m", "benchmarks.tpch_care"]
    finished = subprocess.run(command, input=config.to_json(), capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"tpch_care: {finished.stdout[-2000:]}{finished.stderr[-2000:]}")
    print(finished.stdout)
    return [Row(**row) for row in json.loads(finished.stdout.splitlines()[-1])]


def compare(done: list[Care]) -> list[Row]:
    """Return how far the predictions of each compaction and of each night are off."""
    rows: list[Row] = []
    for one in done:
        if one.run.job == "compaction":
            name = f"night {one.night}, {one.run.table.name}"
            rows.append(_compare(f"{name}: files saved", one.predicted["files"], one.files_saved))
            rows.append(_compare(f"{name}: bytes", one.predicted["bytes"], one.run.metrics["bytes"]))
            rows.append(_compare(f"{name}: cost", one.predicted["gb_hours"], one.run.metrics[GB_HOURS]))
    for night in range(1, NIGHTS + 1):
        runs = [one for one in done if one.night == night]
        costs = sum(one.run.metrics[GB_HOURS] for one in runs)
        rows.append(_compare(f"night {night}: cost", sum(one.predicted["gb_hours"] for one in runs), costs))
    return rows


def _compare(name: str, predicted: float, measured: float) -> Row:
    """Return by which factor a prediction is off, in either direction."""
    low, high = sorted((predicted, measured))
    factor = 1.0 if high == 0 else high / low if low else float("inf")
    return Row(
        f"TPC-H, {name}", factor, 1.0, TARGET, unit="times", note=f"predicted {predicted:g}, measured {measured:g}"
    )


def main() -> None:
    config = CatalogConfig.from_json(sys.stdin.read())
    warehouse = config.warehouses[0].name
    spark = spark_session(
        config,
        "benchmark",
        workload=Workload.MAINTENANCE,
        properties={**FAIR, **session_properties(config, warehouse)},
    )
    # Iceberg looks for orphans of the last day only where this says so.
    java: Any = spark._jsparkSession
    java.sessionState().conf().setConfString("spark.testing", "true")
    with tempfile.TemporaryDirectory() as folder:
        done = care(Tpch(spark, f"`{warehouse}`.{NAMESPACE}", Path(folder), SCALE), config, COMPACTION, NIGHTS, ROUNDS)
    spark.stop()
    for one in done:
        print(one.night, one.run.job, one.run.table.name, round(one.run.seconds or 0, 1), one.run.metrics)
    print(json.dumps([dataclasses.asdict(row) for row in compare(done)]))


if __name__ == "__main__":
    main()
