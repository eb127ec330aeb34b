"""Who sees to a warehouse's snapshots and orphan files: Lakekeeper's own task queues, or the jobs here. Pure functions.

Names of queues, settings and table properties are those of Lakekeeper's documentation (table maintenance).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakewright_spark.policies.model import JobName


@dataclass(frozen=True)
class ServerQueue:
    """One of the server's queues, and which jobs it stands for."""

    name: str
    jobs: tuple[JobName, ...]
    switch: str
    """The queue's setting that turns it on for a warehouse; off by default."""
    override: str
    """The table property that says otherwise for one table."""


QUEUES: tuple[ServerQueue, ...] = (
    ServerQueue(
        "expire_snapshots", ("snapshot-expiration",), "enable-expire-snapshots", "lakekeeper.history.expire.enabled"
    ),
    ServerQueue(
        "remove_orphan_files",
        ("orphan-files", "staged-files"),
        "enable-remove-orphan-files",
        "lakekeeper.remove-orphan-files.enabled",
    ),
)


def find_server_jobs(server_jobs: tuple[JobName, ...], properties: Mapping[str, str]) -> dict[JobName, str]:
    """The jobs that the server does itself on a table with these properties, and where that is said.

    `declared`: what the server does in the table's warehouse.
    """
    jobs: dict[JobName, str] = dict.fromkeys(server_jobs, "`maintenance.server` of the tenant's spec")
    for queue in QUEUES:
        setting = properties.get(queue.override, "").strip().lower()
        if setting == "true":
            jobs |= dict.fromkeys(queue.jobs, f"the table's property {queue.override}")
        elif setting == "false":
            jobs = {job: source for job, source in jobs.items() if job not in queue.jobs}
    return jobs
