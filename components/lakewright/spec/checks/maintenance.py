"""Checks of maintenance: each job has one owner in each warehouse. Never raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakewright_spark.policies.server_queues import QUEUES, describe_lost_backups, find_server_jobs

from lakewright.validation.documents import as_list, as_mapping, join_names
from lakewright.validation.problems import SpecMistake

if TYPE_CHECKING:
    from lakewright_spark.policies.model import PolicyPattern

    from lakewright.spec.maintenance import MaintenanceSpec
    from lakewright.spec.table import TableSpec


def maintenance_checks(document: Mapping[str, Any], warehouses: list[str]) -> Iterator[SpecMistake]:
    """Yield contradictions within the section, and with the rest of the document."""
    maintenance = as_mapping(document.get("maintenance"))
    jobs = [job for job in as_list(maintenance.get("jobs")) if isinstance(job, str)]
    if twice := sorted({job for job in jobs if jobs.count(job) > 1}):
        yield ("maintenance", "jobs"), f"expected each job once; found {', '.join(twice)} again"
    scheduled = [str(job) for job in as_mapping(maintenance.get("schedules"))]
    for job in scheduled:
        if jobs and job not in jobs:
            yield ("maintenance", "schedules", job), f"expected one of `maintenance.jobs`: {join_names(jobs)}"
    for job in map(str, as_mapping(maintenance.get("sizes"))):
        if job not in scheduled:
            expected = join_names(scheduled) if scheduled else "none; add one"
            yield ("maintenance", "sizes", job), f"expected a job of `maintenance.schedules`: {expected}"
    for warehouse in map(str, as_mapping(maintenance.get("standby"))):
        if warehouse not in warehouses:
            yield ("maintenance", "standby", warehouse), f"expected one of the warehouses {join_names(warehouses)}"
    servers = as_mapping(maintenance.get("server"))
    for warehouse, side in servers.items():
        if warehouse not in warehouses:
            names = join_names(warehouses)
            yield ("maintenance", "server", warehouse), f"expected one of the warehouses {names}"
        for queue in QUEUES:
            for section, job_names in (("jobs", jobs), ("schedules", scheduled)):
                both = [job for job in queue.jobs if job in job_names]
                if both and as_mapping(side).get(queue.name) not in (None, False):
                    yield (
                        ("maintenance", "server", warehouse, queue.name),
                        f"expected one owner: `maintenance.{section}` has {', '.join(both)}. Remove it or set this to"
                        " `false`",
                    )
    yield from _tables(document, servers)


def _tables(document: Mapping[str, Any], servers: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield tables with a property that makes the server do what jobs do in their warehouse."""
    if not document.get("maintenance"):
        return
    for index, table in enumerate(as_list(document.get("tables"))):
        properties = as_mapping(as_mapping(table).get("properties"))
        warehouse = str(as_mapping(table).get("name") or "").split(".")[0]
        for queue in QUEUES:
            owned = as_mapping(servers.get(warehouse)).get(queue.name) not in (None, False)
            if str(properties.get(queue.override)).lower() == "true" and not owned:
                yield (
                    ("tables", index, "properties", queue.override),
                    f"expected one owner: jobs do {', '.join(queue.jobs)} in warehouse {warehouse}."
                    f" Set `maintenance.server.{warehouse}.{queue.name}` to have the server do it",
                )


def find_backup_mistakes(
    maintenance: MaintenanceSpec | None, tables: Sequence[TableSpec], policies: Sequence[PolicyPattern]
) -> Iterator[SpecMistake]:
    """Yield backups of deleted rows of declared tables where the server deletes the files that only the backup names.

    Other tables that a pattern matches may have no such queue; the job refuses a backup when it runs.
    """
    for index, spec in enumerate(tables):
        table = spec.path
        jobs = find_server_jobs(maintenance.server_jobs(table.warehouse) if maintenance else (), spec.properties)
        retention, path = spec.policies.retention, ("tables", index, "policies", "retention", "backup")
        for number, pattern in enumerate(policies):
            matches = pattern.matches(table.warehouse, table.namespace, table.name)
            if spec.policies.retention is None and pattern.retention is not None and matches:
                retention, path = pattern.retention, ("policies", number, "retention", "backup")
        if jobs and retention is not None and retention.backup:
            yield path, f"table {table}: {describe_lost_backups(jobs)}"
