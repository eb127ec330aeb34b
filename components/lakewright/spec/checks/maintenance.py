"""What must fit together in a spec's maintenance: one owner for each job in each warehouse. Never raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lakewright_spark.policies.server_queues import QUEUES

from lakewright.validation.problems import Path

Finding = tuple[Path, str]


def maintenance_checks(document: Mapping[str, Any], warehouses: list[str]) -> Iterator[Finding]:
    """Contradictions between the section and the rest of the document, and within it."""
    maintenance = mapping_of(document.get("maintenance"))
    jobs = [job for job in list_of(maintenance.get("jobs")) if isinstance(job, str)]
    if twice := sorted({job for job in jobs if jobs.count(job) > 1}):
        yield ("maintenance", "jobs"), f"expected each job once; found {', '.join(twice)} again"
    servers = mapping_of(maintenance.get("server"))
    for warehouse, said in servers.items():
        if warehouse not in warehouses:
            there = ", ".join(warehouses) or "none"
            yield ("maintenance", "server", warehouse), f"expected one of the warehouses {there}; there is none such"
        for queue in QUEUES:
            both = [job for job in queue.jobs if job in jobs]
            if both and mapping_of(said).get(queue.name) not in (None, False):
                yield (
                    ("maintenance", "server", warehouse, queue.name),
                    f"expected one owner: `maintenance.jobs` has {', '.join(both)}; take it out there, or say `false`",
                )
    yield from _tables(document, servers)


def _tables(document: Mapping[str, Any], servers: Mapping[str, Any]) -> Iterator[Finding]:
    """A table whose own property turns on at the server what the jobs do in its warehouse."""
    if not document.get("maintenance"):
        return
    for index, table in enumerate(list_of(document.get("tables"))):
        properties = mapping_of(mapping_of(table).get("properties"))
        warehouse = str(mapping_of(table).get("name") or "").split(".")[0]
        for queue in QUEUES:
            owned = mapping_of(servers.get(warehouse)).get(queue.name) not in (None, False)
            if str(properties.get(queue.override)).lower() == "true" and not owned:
                yield (
                    ("tables", index, "properties", queue.override),
                    f"expected one owner: in warehouse {warehouse} the jobs do {', '.join(queue.jobs)}, unless"
                    f" `maintenance.server.{warehouse}.{queue.name}` says that the server does",
                )


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return a value that is a mapping, else an empty one."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return a value that is a list, else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []
