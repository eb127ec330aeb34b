"""The seconds of each UTC day in which pods of computing units ran, from the objects of Kubernetes. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from lakewright_spark.times import format_day

from lakewright.validation.documents import as_list, as_mapping, as_text, list_items, list_names

OLDEST = timedelta(days=35)
"""Age of the days that are read from a pod that runs: a collector that did not run for a month misses nothing of it."""
_UNIT_NAME = "app.kubernetes.io/name"
_FINISHED = frozenset({"Succeeded", "Failed"})


def list_pod_days(pod: Mapping[str, Any], now: datetime) -> Iterator[dict[str, Any]]:
    """Yield a measurement for each day in which a pod ran, as `lakewright-spark record-compute` reads them.

    Nothing is yielded for a pod whose containers no node has started, or whose end is not known.
    """
    metadata, status = as_mapping(pod.get("metadata")), as_mapping(pod.get("status"))
    start, end = _parse_time(status.get("startTime")), _find_end(metadata, status, now)
    if start is None or end is None:
        return
    unit = as_text(as_mapping(metadata.get("labels")).get(_UNIT_NAME)) or str(metadata.get("name"))
    requests = _sum_requests(as_mapping(pod.get("spec")))
    begin = max(start, now - OLDEST)
    while begin < end:
        next_day = begin.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        seconds = (min(end, next_day) - begin).total_seconds()
        # The first day is incomplete if it is cut off by OLDEST, and was measured before.
        if begin == start or begin.time() == datetime.min.time():
            yield {
                "day": format_day(begin),
                "unit": unit,
                "pod": str(metadata.get("uid")),
                "seconds": seconds,
                **requests,
            }
        begin = next_day


def _find_end(metadata: Mapping[str, Any], status: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the end of a pod's containers, or else now. None: no container ran, or a finished pod has no end.

    A pod can have a start and be pending, while its image cannot be pulled. A deleted pod has a time until which its
    containers are killed; an object without a node can remain after it.
    """
    if status.get("phase") == "Pending":
        return None
    if status.get("phase") not in _FINISHED:
        deletion = _parse_time(metadata.get("deletionTimestamp"))
        return min(now, deletion) if deletion else now
    states = [as_mapping(as_mapping(entry).get("state")) for entry in as_list(status.get("containerStatuses"))]
    ends = [_parse_time(as_mapping(state.get("terminated")).get("finishedAt")) for state in states]
    return max((end for end in ends if end is not None), default=None)


def _parse_time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None


def _sum_requests(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CPUs and bytes that a pod's containers request; a resource without a known amount is absent.

    Init containers count if they are sidecars, which run as long as the pod.
    """
    containers = [as_mapping(container) for container in as_list(spec.get("containers"))]
    init_containers = [as_mapping(container) for container in as_list(spec.get("initContainers"))]
    containers += [container for container in init_containers if container.get("restartPolicy") == "Always"]
    requests = [as_mapping(as_mapping(container.get("resources")).get("requests")) for container in containers]
    cpu, memory = _sum_quantities(requests, "cpu"), _sum_quantities(requests, "memory")
    return {
        **({} if cpu is None else {"cpu": float(cpu)}),
        **({} if memory is None else {"memory_bytes": math.ceil(memory)}),
    }


def _sum_quantities(requests: Iterable[Mapping[str, Any]], resource: str) -> Decimal | None:
    """Return the sum of a resource in all notations of Kubernetes; None if an amount is no quantity."""
    from kubernetes.utils import quantity  # noqa: PLC0415 - slow to load

    client: Any = quantity  # has no types
    try:
        amounts = [Decimal(client.parse_quantity(str(entry[resource]))) for entry in requests if resource in entry]
    except ValueError:
        return None
    total = sum(amounts, Decimal())
    return total if total.is_finite() else None


def choose_warehouse(spec: Mapping[str, Any], unit: str) -> str | None:
    """Return the warehouse in which the hours of a unit are recorded; None if the tenant has none.

    It is the default warehouse of the unit. Units that the spec does not declare, such as Texera's own units, count in
    the first warehouse.

    Args:
        spec: The spec, unchecked.
        unit: Name of the unit.
    """
    warehouses = list_names(spec, "warehouses")
    visible: list[str] = []
    for _, item in list_items(spec, "computing_units"):
        if item.get("name") == unit:
            selection = as_text(item.get("warehouse"))
            visible = [selection] if selection else [str(name) for name in as_list(item.get("warehouses"))]
    return next((name for name in [*visible, *warehouses] if name in warehouses), None)
