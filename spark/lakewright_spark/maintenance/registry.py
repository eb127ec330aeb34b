"""The registry of maintenance jobs, in the order in which they run on a table.

To add a job: name it in `policies.model.JobName`, write its module in `maintenance.jobs`, and list it here.
"""

from __future__ import annotations

from lakewright_spark.maintenance.jobs import (
    compaction,
    engine_statistics,
    orphan_files,
    refs,
    retention,
    rewrite_manifests,
    snapshot_expiration,
    staged_files,
    statistics,
)
from lakewright_spark.maintenance.jobs.job import MaintenanceJob
from lakewright_spark.policies.model import JobName

MAINTENANCE_JOBS: tuple[MaintenanceJob, ...] = (
    refs.JOB,
    retention.JOB,
    snapshot_expiration.JOB,
    orphan_files.JOB,
    staged_files.JOB,
    compaction.JOB,
    rewrite_manifests.JOB,
    statistics.JOB,
    engine_statistics.JOB,
)

JOBS_BY_NAME: dict[JobName, MaintenanceJob] = {job.name: job for job in MAINTENANCE_JOBS}
