"""Jobs under random faults of store and catalog, and killed jobs: the next run finishes and no data is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from fault_proxy import kill_at_request, random_faults
from lakewright_spark.errors import JobFailedError

from tests.spark.maintenance.conftest import DAY, FaultyWarehouse, Maintained
from tests.spark.maintenance.table_history import FileComparison, TableHistory

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1500 if FULL else 300)]

SEEDS = range(12 if FULL else 1)
JOBS = ["compaction", "snapshot-expiration", "rewrite-manifests", "orphan-files", "staged-files"]


@pytest.fixture
def aged_table(
    create_table: Callable[..., Maintained], faulty: FaultyWarehouse
) -> Callable[[str], tuple[TableHistory, FileComparison]]:
    """Return a function that creates a table of a month ago with work for every job."""

    def live(name: str) -> tuple[TableHistory, FileComparison]:
        table = create_table(name, "(n int) USING iceberg", "faulty")
        table.set_policies(
            history={"versions": 2},
            orphan_files={"older_than_days": 1},
            staged_files={"older_than_days": 1},
            compaction={"min_input_files": 2},
        )
        history = TableHistory(table, faulty.config)
        for number, step in enumerate(["append", "append", "overwrite", "tag", "branch", "append", "append", "fail"]):
            history.take(step, number)
        watch = FileComparison(history)
        watch.look()
        return history, watch

    return live


def rows(history: TableHistory) -> dict[str, list[int]]:
    return {ref: history.rows(ref) for ref in history.refs()}


@pytest.mark.parametrize("seed", SEEDS)
def test_next_run_finishes_after_random_faults(
    aged_table: Callable[[str], tuple[TableHistory, FileComparison]], faulty: FaultyWarehouse, seed: int
) -> None:
    history, watch = aged_table(f"faults_{seed}")
    table, before, random, hits = history.table, rows(history), Random(seed), list[str]()
    for job in [*(JOBS if FULL else ["compaction", "snapshot-expiration", "orphan-files"]), "staged-files"]:
        store, catalog = random_faults(random, 0.15, hits), random_faults(random, 0.15, hits)
        with faulty.store.inject(store), faulty.catalog.inject(catalog), suppress(JobFailedError):
            table.job(job)
        watch.compare(job)
        table.job(job)
        watch.compare(job)
        assert rows(history) == before
        table.now += 2 * DAY
    assert hits, "faults were injected"
    assert history.lost_files() == []


KILLS = [("snapshot-expiration", "store", "?delete", 1)]
"""A job, the server and the text of the request at whose nth occurrence the job is killed."""
if FULL:
    dice = Random(5)
    KILLS += [("staged-files", "store", "?delete", 1), ("compaction", "catalog", "POST", 1)]
    KILLS += [(job, dice.choice(["store", "catalog"]), "", dice.randint(1, 20)) for job in JOBS * 2]


@pytest.mark.parametrize("kill", KILLS, ids=lambda kill: "-".join(str(part) for part in kill if part))
def test_killed_job_does_no_harm(
    aged_table: Callable[[str], tuple[TableHistory, FileComparison]],
    faulty: FaultyWarehouse,
    tmp_path: Path,
    kill: tuple[str, str, str, int],
) -> None:
    job, target_name, line, nth = kill
    history, watch = aged_table(f"killed_{uuid.uuid4().hex[:8]}")
    table, before = history.table, rows(history)
    if job == "staged-files":
        table.job("orphan-files")
        table.now += 2 * DAY
    (tmp_path / "catalog.json").write_text(faulty.config.to_json())
    command = [sys.executable, str(Path(__file__).parent / "killed_job.py"), str(tmp_path / "catalog.json")]
    command += [f"maintained.{table.table.name}", table.policy.model_dump_json(), job, table.now.isoformat()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        target = faulty.store if target_name == "store" else faulty.catalog
        with target.inject(kill_at_request(lambda: os.killpg(process.pid, signal.SIGKILL), nth, line)):
            process.wait()
        died = process.stdout.read() == ""
    assert died or line == "", f"no {line} among {target.lines}"
    watch.compare(job)
    for next_job in [job, *(JOBS if FULL else []), "orphan-files", "staged-files"]:
        table.job(next_job)
        watch.compare(next_job)
        table.now += 2 * DAY
    assert rows(history) == before
    assert history.lost_files() == []
    assert table.objects().keys() == watch.referred, "files of the killed job are gone"
