"""Fairness of nights that are too short, and the speed of four runners in one warehouse. Jobs are simulated."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.heartbeat import Heartbeat
from lakewright_spark.scheduler.run_log.completed_runs import CompletedRuns
from lakewright_spark.scheduler.run_log.recorder import Recorder
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.supervisor import Control, Limits, Supervisor
from lakewright_spark.scheduler.table_worker import Event, TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue
from lakewright_spark.table_identifier import TableIdentifier

from benchmarks.ground import Ground
from benchmarks.growth_plot import plot
from benchmarks.measure import Row, measure_seconds
from benchmarks.simulated_nights import SimulatedResult, simulate
from demo.stage import REPOSITORY

MANY = int(os.environ.get("LAKEWRIGHT_BENCH_CARE_TABLES", "10000"))
FEW = 300
NIGHTS = 9
MAX_NIGHTS, MAX_DELAY, MAX_GROWTH, MAX_PYTHON_MIB = 4, 1, 11.0, 512
SHARED_TABLES, JOB_SECONDS, PARALLEL, RUNNERS = 160, 4.0, 4, 4
PLOT = REPOSITORY / "docs" / "guides" / "nights.svg"


def measure(ground: Ground) -> list[Row]:
    return [*measure_fairness(), measure_runners(ground.catalog)]


def measure_fairness() -> list[Row]:
    """Simulate nights of many tables, of a tenth, of few, and with a table that runs out of memory."""
    killer = f"t{MANY // 2:05d}"
    whole, killed = _simulate(MANY), _simulate(MANY, killer=killer)
    tenth, by_name = _simulate(MANY // 10), _simulate(MANY // 10, by_name=True)
    few, few_killed = _simulate(FEW), _simulate(FEW, killer=f"t{FEW - 1:05d}")
    if "LAKEWRIGHT_BENCH_CARE_TABLES" not in os.environ:
        PLOT.write_text(_plot({f"{MANY:,} tables": whole, "with a table that kills Spark": killed, "by name": by_name}))
    tables = f"{MANY:,} tables, {NIGHTS} nights with time for 30 % of the work, simulated jobs"
    return [
        Row(
            "nights between two turns of a table",
            max(whole.gaps.values()),
            MAX_NIGHTS,
            1.0,
            unit="nights",
            note=f"{tables}; the longest of all tables; reference: at most",
        ),
        Row(
            "delay by a table that runs out of memory",
            _compute_delay(whole, killed),
            MAX_DELAY,
            1.0,
            unit="nights",
            note=f"{tables}; Spark died {killed.deaths} times; reference: at most",
        ),
        Row(
            f"the delay with {FEW} tables",
            _compute_delay(few, few_killed),
            MAX_DELAY,
            1.0,
            unit="nights",
            note=f"Spark died {few_killed.deaths} times in {NIGHTS} nights; reference: at most",
        ),
        Row(
            f"a night, {MANY:,} tables against {MANY // 10:,}",
            whole.seconds,
            tenth.seconds,
            MAX_GROWTH,
            note="processor time of plans, order, queue, supervisor and run log",
        ),
        Row(
            "Python's memory",
            max(whole.peak_mib, killed.peak_mib),
            MAX_PYTHON_MIB,
            1.0,
            unit="MiB",
            note=f"the most in {NIGHTS} nights of {MANY:,} tables; reference: at most",
        ),
    ]


def _simulate(tables: int, **more: Any) -> SimulatedResult:
    """Simulate nights in a process of their own, for its memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(simulate, tables, NIGHTS, **more).result()


def _compute_delay(usual: SimulatedResult, killed: SimulatedResult) -> int:
    """Return by how many nights a table that kills Spark delays another table at most."""
    return max(gap - usual.gaps[name] for name, gap in killed.gaps.items() if name != killed.killer)


def _plot(results: dict[str, SimulatedResult]) -> str:
    return plot(
        "Nights with time for 30 % of the work",
        "nights",
        "tables that had their turn (%)",
        {name: [(0.0, 0.0), *enumerate(result.shares, start=1)] for name, result in results.items()},
    )


class SleepingWorker:
    """A worker whose jobs sleep, as this process does while Spark works elsewhere."""

    def __init__(self, spark: object, work: TableWork, slot: int, events: queue.SimpleQueue[Event], *_: object) -> None:
        del spark
        self.work, self.slot, self.events = work, slot, events
        self.stop, self.ended = threading.Event(), threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        worker: Any = self
        for run in self.work.runs:
            began = dataclasses.replace(run, state=RunState.RUNNING, started_at=datetime.now(UTC))
            self.events.put(Event("began", worker, began))
            time.sleep(JOB_SECONDS)
            ended = dataclasses.replace(began, state=RunState.SUCCEEDED, finished_at=datetime.now(UTC))
            self.events.put(Event("ended", worker, ended))
        self.ended.set()
        self.events.put(Event("left", worker))


def measure_runners(config: CatalogConfig) -> Row:
    """Measure the work of four runners that share the tables of a warehouse by claims on a real server."""
    config = config.select_warehouses([config.warehouses[0].name])
    done: list[str] = []
    one = measure_seconds(lambda: _share(config, "one", 1, done))
    four = measure_seconds(lambda: _share(config, "four", RUNNERS, done))
    twice = sorted(uuid for uuid in set(done) if done.count(uuid) > 1)
    assert (len(set(done)), twice) == (2 * SHARED_TABLES, []), "each table once"
    return Row(
        f"{RUNNERS} runners of a warehouse against one",
        four,
        one,
        1 / 3,
        note=f"{SHARED_TABLES} tables, {PARALLEL} at once in each runner, jobs of {JOB_SECONDS:g} s",
    )


def _share(config: CatalogConfig, prefix: str, runners: int, done: list[str]) -> None:
    with ThreadPoolExecutor(runners) as pool:
        list(pool.map(lambda number: _run(config, prefix, f"{prefix}-{number}", done), range(runners)))


def _run(config: CatalogConfig, prefix: str, runner: str, done: list[str]) -> None:
    warehouse, now = config.warehouses[0].name, datetime.now(UTC)
    catalog = open_catalog(config, warehouse)
    works: list[TableWork] = []
    for number in range(SHARED_TABLES):
        table = TableIdentifier(warehouse, (prefix,), f"t{number}")
        run = RunRecord(runner=runner, table=table, table_uuid=f"{prefix}-{number}", job="statistics", queued_at=now)
        works.append(TableWork(table, TablePolicies(), (run,)))

    def observe(run: RunRecord) -> None:
        if run.state is RunState.SUCCEEDED:
            done.append(run.table_uuid)

    control = Control()
    recorder = Recorder(config, {warehouse: catalog}, lambda: datetime.now(UTC))
    with _hold(config, catalog, runner, control) as claims:
        waiting = WorkQueue(
            works,
            {warehouse: claims},
            lost=control.lost,
            look_ahead=2 * PARALLEL,
            ended={warehouse: CompletedRuns(config, warehouse, catalog)},
            is_recorded=recorder.has_recorded,
            record_soon=recorder.flush_soon,
        )
        waiting.start()
        recorder.start()
        spark: Any = None
        start: Any = SleepingWorker
        supervisor = Supervisor(
            spark, Limits(PARALLEL), control, [recorder, observe], lambda: datetime.now(UTC), start_worker=start
        )
        supervisor.run(waiting)
        waiting.close()
        assert recorder.close() == []
    assert not control.lost


@contextmanager
def _hold(config: CatalogConfig, catalog: Any, runner: str, control: Control) -> Iterator[RunnerClaims]:
    claims = RunnerClaims(config, config.warehouses[0].name, catalog, runner, timedelta(minutes=3))
    claims.register(datetime.now(UTC))
    heartbeat = Heartbeat([claims], control)
    heartbeat.start()
    yield claims
    assert heartbeat.close() == []
