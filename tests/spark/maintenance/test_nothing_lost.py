"""No job deletes a referenced file or a row, after any changes and beside any writers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError
from lakewright_spark.policies.model import JOBS, JobName
from waiting import wait_until

from tests.spark.maintenance.conftest import DAY, Maintained
from tests.spark.maintenance.table_history import MEANWHILE, STEPS, FileComparison, TableHistory

pytestmark = [pytest.mark.long, pytest.mark.spark]

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
EXAMPLES = 30 if FULL else 1
IN_TURN = [job for job in JOBS if job not in {"retention", "statistics"}]
_names = count()


# With delete files, Spark's procedures do the work that Iceberg's library otherwise does in this process.
_with_deletes = example(
    steps=["append", "overwrite", "branch", "append", "write branch", "tag", "delete", "roll back", "append", "fail"],
    jobs=["orphan-files", "compaction", "snapshot-expiration", "rewrite-manifests", "staged-files"],
    meanwhile=["begin and end", "append", "append and tag", "append", "nothing"] * 2,
)


@pytest.mark.timeout(90 * EXAMPLES + 240)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    # The example below and random ones, without shrinking, which would take minutes.
    phases=[Phase.explicit, *([Phase.generate] if FULL else [])],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=9).map(lambda steps: ["append", *steps, "fail"]),
    jobs=st.permutations(IN_TURN),
    meanwhile=st.lists(st.sampled_from(MEANWHILE), min_size=2 * len(IN_TURN), max_size=2 * len(IN_TURN)),
)
@example(
    steps=["append", "overwrite", "branch", "append", "write branch", "tag", "append", "roll back", "append", "fail"],
    jobs=["orphan-files", "compaction", "snapshot-expiration", "rewrite-manifests", "staged-files"],
    meanwhile=["begin and end", "append", "append and tag", "append", "nothing"] * 2,
)
@(_with_deletes if FULL else lambda test: test)
def test_referenced_files_are_never_changed(
    create_table: Callable[..., Maintained],
    tenant: CatalogConfig,
    steps: list[str],
    jobs: list[JobName],
    meanwhile: list[str],
) -> None:
    table = create_table(
        f"random_{next(_names)}", "(n int) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    table.set_policies(
        history={"versions": 2},
        orphan_files={"older_than_days": 1},
        staged_files={"older_than_days": 1},
        compaction={"min_input_files": 2},
    )
    history = TableHistory(table, tenant)
    for number, step in enumerate(steps):
        history.take(step, number)
    refs = history.refs()
    rows = {ref: history.rows(ref) for ref in refs}
    watch = FileComparison(history)
    history.begin()  # old enough to become a candidate, and committed before its waiting time ends

    # Files written from now on are younger than the minimum age; stores report ages in whole seconds.
    floor = math.ceil(time.time())
    wait_until(lambda: time.time() >= floor)
    table.now = datetime.fromtimestamp(floor, UTC) + DAY
    history.begin()  # remains open during all jobs of the first day
    watch.look()
    for job, other in zip(jobs, meanwhile, strict=False):
        with history.change_concurrently(other):
            _run(table, job, other)
        watch.compare(job)
    while history.uncommitted_writes:
        history.end()

    table.now += 4 * DAY
    for job, other in zip(jobs, meanwhile[len(jobs) :], strict=True):
        with history.change_concurrently(other):
            _run(table, job, other)
        watch.compare(job)

    assert refs <= history.refs()
    rows["main"] = sorted([*rows["main"], *history.added])
    assert {ref: history.rows(ref) for ref in refs} == rows
    assert history.lost_files() == [], "unreferenced files are gone"


def _run(table: Maintained, job: JobName, other: str) -> None:
    """Run a job; only jobs that rewrite the table may fail, when another writer commits first."""
    contested = job in {"compaction", "rewrite-manifests"} and other.startswith("append")
    with suppress(JobFailedError) if contested else nullcontext():
        table.job(job)
