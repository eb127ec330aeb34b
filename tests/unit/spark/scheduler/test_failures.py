"""A run fails if its job could not do all of its work."""

from __future__ import annotations

import pytest
from lakewright_spark.maintenance.jobs.compaction import CompactionMetrics
from lakewright_spark.maintenance.jobs.job import JobMetrics
from lakewright_spark.maintenance.jobs.staged_files import StagedFilesMetrics
from lakewright_spark.scheduler.run_log.records import RunState
from lakewright_spark.scheduler.table_worker import _to_fields


@pytest.mark.parametrize(
    ("metrics", "state", "reason"),
    [
        (JobMetrics(), RunState.SUCCEEDED, ""),
        (StagedFilesMetrics(deleted=3), RunState.SUCCEEDED, ""),
        (StagedFilesMetrics(deleted=1, refused=2), RunState.FAILED, "the store refused to delete 2 of 3 files"),
        (CompactionMetrics(failed=2), RunState.FAILED, "2 files could not be rewritten; all other files were"),
    ],
)
def test_failed_parts_of_a_job_fail_its_run(metrics: JobMetrics, state: RunState, reason: str) -> None:
    fields = _to_fields(metrics)
    assert fields["state"] is state
    assert fields["reason"].startswith(reason)
    assert "state" not in fields["metrics"]
