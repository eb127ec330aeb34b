"""A runner that is killed, told to end, or whose storage fails: the next one finishes, nothing is lost or stuck."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_catalog import open_catalog
from lakewright_spark.scheduler.lease import read
from lakewright_spark.scheduler.outcome import Outcome
from lakewright_spark.scheduler.records import RunState
from pyspark.sql import SparkSession

from .scheduling import Place

pytestmark = pytest.mark.spark

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
KILLS = 6 if FULL else 1
TABLES, FILES = (6, 6) if FULL else (3, 5)


@pytest.fixture
def place(tenant: CatalogConfig, spark: SparkSession) -> Iterator[Place]:
    name = f"crash_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE NAMESPACE results.{name}")
    yield Place(tenant.for_warehouses(["results"]), spark, name)
    for row in spark.sql(f"SHOW TABLES IN results.{name}").collect():
        spark.sql(f"DROP TABLE results.{name}.{row.tableName}")
    spark.sql(f"DROP NAMESPACE results.{name}")


class Runner:
    """`lakewright-spark maintain` in a process group of its own."""

    def __init__(self, place: Place, folder: Path, *words: str) -> None:
        config = folder / "catalog.json"
        config.write_text(place.config.to_json())
        program = [sys.executable, "-m", "lakewright_spark.cli", "maintain", "--config", str(config)]
        program += ["--namespace", place.name, "--lease", "5s", "--parallel", "2", *words]
        self.process = subprocess.Popen(
            program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stderr
        self.lines: list[str] = []
        self.news = threading.Condition()
        threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()

    def done(self, runs: int) -> None:
        """Returns when so many runs have succeeded."""

        def enough() -> bool:
            return sum(line.startswith("succeeded ") for line in self.lines) >= runs

        with self.news:
            assert self.news.wait_for(enough, timeout=120), "".join(self.lines)

    def end(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)
        self.process.wait(60)


def next_run(place: Place) -> Outcome:
    """Of whoever comes next, as soon as the lease has expired."""
    catalog = open_catalog(place.config, place.warehouse)
    give_up = time.monotonic() + 60
    while (row := read(catalog)) and row.held_against("next", datetime.now(UTC)):
        assert time.monotonic() < give_up, f"the lease of {row.holder} is stuck"
    return place.maintenance().run()


def rows(place: Place, table: str) -> list[int]:
    place.spark.catalog.refreshTable(table)
    return sorted(row.n for row in place.spark.table(table).collect())


@pytest.mark.timeout(120 + 120 * KILLS)
def test_after_a_kill_the_next_run_finishes(place: Place, tmp_path: Path) -> None:
    tables = [place.table(f"t{number}", files=FILES) for number in range(TABLES)]
    chance = random.Random(7)
    for _ in range(KILLS):
        runner = Runner(place, tmp_path)
        try:
            runner.done(chance.randrange(1, 4))
        finally:
            runner.end(signal.SIGKILL)
        for table in tables:
            place.spark.sql(f"INSERT INTO {table} VALUES (-1)")
    outcome = next_run(place)
    assert outcome.error() is None
    left = [run for run in place.recorded() if not run.state.ended]
    assert left == [], "what the dead one left is closed"
    lost = [run for run in place.recorded() if "died" in run.reason]
    assert lost, "and said to be lost"
    assert {run.state for run in lost} <= {RunState.FAILED, RunState.CANCELLED}
    for table in tables:
        assert rows(place, table) == [*[-1] * KILLS, *range(FILES)]
    compacted = {run.table.name for run in place.recorded() if (run.job, run.state) == ("compaction", "SUCCEEDED")}
    assert compacted == {f"t{number}" for number in range(TABLES)}


@pytest.mark.skipif(not FULL, reason="a JVM of its own: test-all")
def test_told_to_end_it_finishes_what_it_began_and_gives_the_lease_back(place: Place, tmp_path: Path) -> None:
    tables = [place.table(f"t{number}", files=FILES) for number in range(TABLES)]
    runner = Runner(place, tmp_path)
    runner.done(1)
    runner.process.send_signal(signal.SIGTERM)
    assert runner.process.wait(120) == 14
    said = re.sub(r"\s+", " ", "".join(runner.lines))
    assert "the process was told to end" in said
    row = read(open_catalog(place.config, "results"))
    assert row is not None
    assert row.holder is None
    assert {run.state for run in place.recorded()} <= {RunState.SUCCEEDED, RunState.CANCELLED}
    assert next_run(place).error() is None
    for table in tables:
        assert rows(place, table) == list(range(FILES))
