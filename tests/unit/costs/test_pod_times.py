"""The seconds of pods by UTC day, from the objects of Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from lakewright.costs.pod_times import choose_warehouse, list_pod_days

NOW = datetime(2026, 11, 27, 6, tzinfo=UTC)
SPEC = {
    "warehouses": [{"name": "raw"}, {"name": "curated"}],
    "computing_units": [
        {"name": "bound", "warehouse": "curated"},
        {"name": "chooses", "warehouses": ["curated", "raw"]},
        {"name": "sees-all", "warehouses": "all"},
        {"name": "mistaken", "warehouse": "gone"},
    ],
}


def make_pod(start: str | None, *ends: str, phase: str = "Running", **requests: str) -> dict[str, Any]:
    """Return a pod with a container for each end."""
    return {
        "metadata": {"name": "notebook-1", "uid": "u1", "labels": {"app.kubernetes.io/name": "notebook"}},
        "spec": {"containers": [{"resources": {"requests": requests}}, {"resources": {}}]},
        "status": {
            "phase": phase,
            **({"startTime": start} if start else {}),
            "containerStatuses": [{"state": {"terminated": {"finishedAt": end}}} for end in ends],
        },
    }


def list_seconds(pod: dict[str, Any]) -> dict[str, float]:
    return {row["day"]: row["seconds"] for row in list_pod_days(pod, NOW)}


def test_running_pod_counts_until_now_in_days() -> None:
    assert list_seconds(make_pod("2026-11-25T23:00:00Z")) == {
        "2026-11-25": 3600,
        "2026-11-26": 86_400,
        "2026-11-27": 21_600,
    }


def test_finished_pod_counts_until_its_last_container() -> None:
    pod = make_pod("2026-11-27T01:00:00Z", "2026-11-27T01:10:00Z", "2026-11-27T01:30:00Z", phase="Failed")

    assert list_seconds(pod) == {"2026-11-27": 1800}


@pytest.mark.parametrize(("deletion", "seconds"), [("2026-11-27T02:00:00Z", 3600), ("2026-11-27T09:00:00Z", 18_000)])
def test_deleted_pod_counts_until_its_deletion(deletion: str, seconds: int) -> None:
    """The time of the deletion is in the future while the containers may end by themselves."""
    pod = make_pod("2026-11-27T01:00:00Z")
    pod["metadata"]["deletionTimestamp"] = deletion

    assert list_seconds(pod) == {"2026-11-27": seconds}


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(None, phase="Pending"),
        make_pod("2026-11-27T01:00:00Z", phase="Pending"),
        make_pod("2026-11-27T01:00:00Z", phase="Failed"),
        make_pod("2026-11-27T07:00:00Z"),
        make_pod("soon"),
        {},
    ],
    ids=["no node", "no image", "end is not known", "clock is behind", "no time", "no object"],
)
def test_pod_without_times_counts_nothing(pod: dict[str, Any]) -> None:
    assert list_seconds(pod) == {}


def test_days_before_the_oldest_are_left_out() -> None:
    """A day that is cut off was recorded completely by an earlier run."""
    days = list_seconds(make_pod("2026-01-01T00:00:00Z"))

    assert (min(days), days[min(days)], len(days)) == ("2026-10-24", 86_400, 35)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({"cpu": "1500m", "memory": "4Gi"}, {"cpu": 1.5, "memory_bytes": 4 * 2**30}),
        ({}, {"cpu": 0.0, "memory_bytes": 0}),
        ({"cpu": "0", "memory": "1e3"}, {"cpu": 0.0, "memory_bytes": 1000}),
        ({"cpu": "100u", "memory": "1Ei"}, {"cpu": 0.0001, "memory_bytes": 2**60}),
        ({"cpu": "1", "memory": "1500m"}, {"cpu": 1.0, "memory_bytes": 2}),
        ({"cpu": "2", "memory": "1e9x"}, {"cpu": 2.0}),
        ({"cpu": "two", "memory": "1Gi"}, {"memory_bytes": 2**30}),
    ],
)
def test_requests_of_all_containers_are_added(requests: dict[str, str], expected: dict[str, Any]) -> None:
    (row,) = list_pod_days(make_pod("2026-11-27T01:00:00Z", **requests), NOW)

    assert {key: row[key] for key in ("cpu", "memory_bytes") if key in row} == expected


@pytest.mark.parametrize(
    ("unit", "warehouse"),
    [("bound", "curated"), ("chooses", "curated"), ("sees-all", "raw"), ("mistaken", "raw"), ("of-texera", "raw")],
)
def test_hours_belong_to_the_default_warehouse(unit: str, warehouse: str) -> None:
    assert choose_warehouse(SPEC, unit) == warehouse
    assert choose_warehouse({}, unit) is None


def test_sidecars_count_and_other_init_containers_do_not() -> None:
    """A sidecar, such as the proxy of Texera's units, runs as long as the pod."""
    pod = make_pod("2026-11-27T01:00:00Z", "2026-11-27T01:30:00Z", cpu="1", memory="1Gi")
    requests = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    pod["spec"]["initContainers"] = [requests | {"restartPolicy": "Always"}, requests]

    (row,) = list_pod_days(pod, NOW)

    assert (row["cpu"], row["memory_bytes"]) == (1.5, 2 * 1024**3)
