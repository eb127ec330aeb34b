"""Maintenance by Lakekeeper's own task queues, which replaces jobs of this package. Pure functions.

Names of queues, settings and table properties come from Lakekeeper's documentation (table maintenance).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakewright_spark.policies.model import JobName


@dataclass(frozen=True)
class ServerQueue:
    """A queue of the server, and the jobs that it replaces."""

    name: str
    jobs: tuple[JobName, ...]
    switch: str
    """The queue's setting that turns it on for a warehouse; off by default."""
    override: str
    """The table property that overrides the setting for a table."""


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
    """Return the jobs that the server runs on a table with these properties, and the setting that enables each job.

    `server_jobs` are the jobs that the server runs in the table's warehouse.
    """
    jobs: dict[JobName, str] = dict.fromkeys(server_jobs, "`maintenance.server` of the tenant's spec")
    for queue in QUEUES:
        setting = properties.get(queue.override, "").strip().lower()
        if setting == "true":
            jobs |= dict.fromkeys(queue.jobs, f"the table's property {queue.override}")
        elif setting == "false":
            jobs = {job: source for job, source in jobs.items() if job not in queue.jobs}
    return jobs


def describe_lost_backups(jobs: Iterable[JobName]) -> str:
    """Return why a table whose snapshots or orphan files the server deletes cannot have backups."""
    names = ", ".join(dict.fromkeys(jobs))
    return (
        f"expected no `backup` where the catalog's server does {names}: it deletes files of deleted rows, which only "
        "the backup names. Remove `backup`, or turn the server's queues off for the table"
    )
