"""Events of drift on a real API server, with the rights of the drift check's ServiceAccount."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from lakewright.ci.documents import read_drift
from lakewright.ci.errors import PublishError
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.cluster import DRIFTED_KEY, DriftEvents, EventSource

from tests.control_plane import ControlPlane

CHANGED = {"type": "x:lakekeeper:Warehouse", "resource": "executions", "property": "name", "kind": "changed"}


def check(*stacks: dict[str, Any], ended: float = 1_700_000_000) -> DriftCheck:
    return DriftCheck(read_drift(json.dumps({"version": 1, "stacks": stacks})), ended)


def stack(name: str, *differences: dict[str, Any], problems: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"stack": name, "tenant": name, "differences": differences, "problems": problems}


@pytest.fixture
def tenant(cluster: ControlPlane) -> Iterator[str]:
    """A tenant with a namespace."""
    name = f"t{uuid4().hex[:8]}"
    with cluster.http() as http:
        http.post("/api/v1/namespaces", json={"metadata": {"name": f"tenant-{name}"}}).raise_for_status()
        yield name
        http.delete(f"/api/v1/namespaces/tenant-{name}").raise_for_status()


@pytest.fixture
def event_source(cluster: ControlPlane) -> Iterator[EventSource]:
    """The namespace of the check."""
    namespace = f"drift-{uuid4().hex[:8]}"
    with cluster.http() as http:
        http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
        yield EventSource(namespace, "drift", "drift-memory", "drift-123-abc")
        http.delete(f"/api/v1/namespaces/{namespace}").raise_for_status()


@pytest.fixture
def events(cluster: ControlPlane, event_source: EventSource) -> DriftEvents:
    return DriftEvents(event_source, cluster.api_client())


def list_events(cluster: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    return cluster.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]


def test_drift_is_an_event_of_the_namespace(cluster: ControlPlane, events: DriftEvents, tenant: str) -> None:
    events.publish(check(stack(tenant, CHANGED)))

    (event,) = list_events(cluster, f"tenant-{tenant}")
    assert (event["reason"], event["type"], event["action"]) == ("DriftFound", "Warning", "CheckDrift")
    assert event["regarding"]["kind"] == "Namespace"
    assert event["regarding"]["uid"] == cluster.get(f"/api/v1/namespaces/tenant-{tenant}")["metadata"]["uid"]
    assert event["reportingInstance"] == "drift-123-abc"
    assert "Warehouse executions name" in event["note"]


def test_same_drift_again_extends_the_series(cluster: ControlPlane, events: DriftEvents, tenant: str) -> None:
    for number in range(3):
        events.publish(check(stack(tenant, CHANGED), ended=1_700_000_000 + number))

    (event,) = list_events(cluster, f"tenant-{tenant}")
    assert event["series"] == {"count": 3, "lastObservedTime": "2023-11-14T22:13:22.000001Z"}


def test_drift_that_is_gone_is_an_event(cluster: ControlPlane, events: DriftEvents, tenant: str) -> None:
    for differences in ([CHANGED], [], []):
        events.publish(check(stack(tenant, *differences)))

    tenant_events = list_events(cluster, f"tenant-{tenant}")
    assert sorted((event["reason"], event["type"]) for event in tenant_events) == [
        ("DriftFound", "Warning"),
        ("DriftGone", "Normal"),
    ]
    assert not any(event.get("series") for event in tenant_events)


def test_tenant_without_namespace_is_on_the_cron_job(
    cluster: ControlPlane, events: DriftEvents, event_source: EventSource
) -> None:
    events.publish(check(stack("nowhere", CHANGED)))
    events.publish(DriftCheck(None, 1_700_000_000, failure="killed"))

    cron_job_events = list_events(cluster, event_source.namespace)
    assert {event["regarding"]["kind"] for event in cron_job_events} == {"CronJob"}
    assert sorted(event["reason"] for event in cron_job_events) == ["CheckFailed", "DriftFound"]


def test_server_that_is_down_makes_no_storm(
    cluster: ControlPlane, events: DriftEvents, event_source: EventSource
) -> None:
    down = [stack(f"t{number:03}", problems=("the server does not respond",)) for number in range(200)]

    assert events.publish(check(*down)) == 1

    (event,) = list_events(cluster, event_source.namespace)
    assert event["note"].startswith("200 tenants: t000")


@pytest.fixture
def terminating_tenant(cluster: ControlPlane) -> Iterator[str]:
    """A tenant whose namespace is being deleted."""
    name = f"a{uuid4().hex[:8]}"
    path = f"/api/v1/namespaces/tenant-{name}"
    with cluster.http() as http:
        metadata = {"name": f"tenant-{name}", "finalizers": ["tests.lakewright/hold"]}
        http.post("/api/v1/namespaces", json={"metadata": metadata}).raise_for_status()
        http.delete(path).raise_for_status()
        yield name
        merge = {"Content-Type": "application/merge-patch+json"}
        http.patch(path, headers=merge, content='{"metadata": {"finalizers": []}}').raise_for_status()


def test_terminating_namespace_suppresses_no_other_event(
    cluster: ControlPlane, events: DriftEvents, event_source: EventSource, tenant: str, terminating_tenant: str
) -> None:
    with pytest.raises(PublishError, match=r"responded with 403 .*being terminated"):
        events.publish(check(stack(terminating_tenant, CHANGED), stack(tenant, CHANGED)))

    assert [event["reason"] for event in list_events(cluster, f"tenant-{tenant}")] == ["DriftFound"]
    memory = cluster.get(f"/api/v1/namespaces/{event_source.namespace}/configmaps/{event_source.config_map}")
    assert json.loads(memory["data"][DRIFTED_KEY]) == [terminating_tenant, tenant]


def test_missing_right_is_an_error(cluster: ControlPlane, event_source: EventSource, tenant: str) -> None:
    settings: Any = kubernetes_client.Configuration()
    settings.host, settings.ssl_ca_cert = cluster.endpoint, str(cluster.ca)
    anonymous = DriftEvents(event_source, kubernetes_client.ApiClient(settings))

    with pytest.raises(PublishError, match=r"the cluster responded with 40[13]"):
        anonymous.publish(check(stack(tenant, CHANGED)))
