"""Reasons for skipping a job on a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from lakewright_spark.maintenance.registry import MAINTENANCE_JOBS
from lakewright_spark.maintenance.switches import reason_to_skip
from lakewright_spark.maintenance.table.iceberg import sql_map
from lakewright_spark.policies.model import JOBS, JobName, TablePolicies

NOW = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policies", "job", "reason"),
    [
        ({}, "compaction", None),
        ({"maintenance": {"disabled": True}}, "statistics", "maintenance is switched off"),
        ({"maintenance": {"disabled_jobs": ["compaction"]}}, "compaction", "compaction is switched off"),
        ({"maintenance": {"disabled_jobs": ["compaction"]}}, "retention", None),
        (
            {"lock": {"since": "2026-01-08T00:00:00Z", "message": "audit"}},
            "staged-files",
            "locked since 2026-01-08 00:00:00 UTC: audit",
        ),
        ({"lock": {"since": "2026-01-08T00:00:00Z", "expires_in_days": 2}}, "staged-files", None),
        ({"lock": {"since": "2026-01-08T00:00:00Z"}}, "statistics", None),
        ({"replica": True}, "retention", "the table is a replica; this job runs on the primary only"),
        ({"replica": True}, "orphan-files", None),
    ],
)
def test_switches_locks_and_replicas(policies: dict[str, Any], job: JobName, reason: str | None) -> None:
    assert reason_to_skip(job, TablePolicies.model_validate(policies), NOW) == reason


def test_every_job_of_a_policy_exists() -> None:
    assert tuple(job.name for job in MAINTENANCE_JOBS) == JOBS


def test_options_are_a_map_of_strings() -> None:
    assert sql_map({"min-input-files": 5, "a": "b"}) == "map('min-input-files', '5', 'a', 'b')"
