"""Checks of maintenance: each job has one owner in each warehouse. Never raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright_spark.policies.server_queues import QUEUES

from lakewright.validation.documents import as_list, as_mapping, join_names
from lakewright.validation.problems import SpecMistake


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
