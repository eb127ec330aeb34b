"""The drift check's objects on a real API server: accepted, admitted, and with the least rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from lakewright.ci.documents import read_drift
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.cluster import DriftEvents, EventSource

from tests.control_plane import ControlPlane
from tests.platform_documents import DIGEST, trial
from tests.platform_project import PlatformStack, create_platform

CHECK: dict[str, Any] = {
    "image": f"registry.example/lakewright{DIGEST}",
    "state": "s3://acme-states?region=us-west-2",
    "passphrase": {"name": "stacks", "key": "passphrase"},
    "role_arn": "arn:aws:iam::111122223333:role/lakewright-drift",
    "contexts": ["tests"],
    "catalog_token": {},
}


@pytest.fixture(scope="module")
def namespace() -> str:
    return f"platform-{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def platform(
    tmp_path_factory: pytest.TempPathFactory, cluster: ControlPlane, provider_home: Path, namespace: str
) -> Iterator[PlatformStack]:
    """A deployed trial with a drift check."""
    stack = create_platform(
        tmp_path_factory.mktemp("platform"),
        trial(namespace=f"{namespace}-{len(str(provider_home))}", drift_check=CHECK),
        render=False,
        KUBECONFIG=str(cluster.kubeconfig),
        PULUMI_HOME=str(provider_home),
    )
    stack.up()
    yield stack
    stack.output("destroy", "--yes", "--engine", "embedded")


@pytest.fixture
def event_source(platform: PlatformStack) -> EventSource:
    namespace = platform.spec["namespace"]
    return EventSource(namespace, "lakekeeper-drift", "lakekeeper-drift-memory", "a-pod")


@pytest.fixture
def token(cluster: ControlPlane, event_source: EventSource) -> str:
    """A token of the check's ServiceAccount, as its pod has it."""
    path = f"/api/v1/namespaces/{event_source.namespace}/serviceaccounts/{event_source.cron_job}/token"
    with cluster.http() as http:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return http.post(path, json=request).raise_for_status().json()["status"]["token"]


def api_client(cluster: ControlPlane, token: str) -> Any:
    settings: Any = kubernetes_client.Configuration()
    settings.host, settings.ssl_ca_cert = cluster.endpoint, str(cluster.ca)
    settings.api_key = {"authorization": f"Bearer {token}"}
    return kubernetes_client.ApiClient(settings)


def test_job_of_the_cron_job_is_admitted(cluster: ControlPlane, event_source: EventSource) -> None:
    """The namespace enforces Pod Security `restricted`; a pod of the template is created on trial."""
    base = f"/apis/batch/v1/namespaces/{event_source.namespace}"
    template = cluster.get(f"{base}/cronjobs/{event_source.cron_job}")["spec"]["jobTemplate"]["spec"]["template"]
    pod = {"metadata": {"name": "trial", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}

    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{event_source.namespace}/pods", params={"dryRun": "All"}, json=pod)

    assert response.status_code == 201, response.text


def test_check_leaves_no_drift_in_the_platform(
    cluster: ControlPlane, platform: PlatformStack, event_source: EventSource, token: str
) -> None:
    DriftEvents(event_source, api_client(cluster, token)).publish(DriftCheck(None, 1_700_000_000, failure="killed"))

    preview = json.loads(platform.output("preview", "--refresh", "--engine", "embedded", "--json"))

    assert not [step["urn"] for step in preview["steps"] if "drift" in step["name"] and step["keys"]]


@pytest.mark.parametrize(
    ("method", "path", "is_allowed"),
    [
        ("GET", "/api/v1/namespaces", True),
        ("GET", "/apis/apps/v1/deployments", True),
        ("GET", "/apis/networking.k8s.io/v1/networkpolicies", True),
        ("GET", "/api/v1/secrets", False),
        ("GET", "/api/v1/pods", False),
        ("DELETE", "/api/v1/namespaces/default", False),
        ("PATCH", "/api/v1/namespaces/kube-public/configmaps/other", False),
        ("POST", "/api/v1/namespaces/default/pods", False),
    ],
)
def test_service_account_may_only_read(
    cluster: ControlPlane, token: str, method: str, path: str, *, is_allowed: bool
) -> None:
    with cluster.http(token) as http:
        headers = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
        response = http.request(method, path, content=b"" if method in ("GET", "DELETE") else b"{}", headers=headers)

    assert (response.status_code == 200) is is_allowed, response.text
    assert is_allowed or response.status_code == 403


def test_check_publishes_with_its_own_rights(cluster: ControlPlane, event_source: EventSource, token: str) -> None:
    name = f"t{uuid4().hex[:8]}"
    with cluster.http() as http:
        http.post("/api/v1/namespaces", json={"metadata": {"name": f"tenant-{name}"}}).raise_for_status()
    events = DriftEvents(event_source, api_client(cluster, token))
    changed = {"type": "x:Warehouse", "resource": "w", "property": "p"}

    for differences in ([changed], [changed], []):
        stacks = [{"stack": name, "tenant": name, "differences": differences}]
        events.publish(DriftCheck(read_drift(json.dumps({"version": 1, "stacks": stacks})), 1_700_000_000))

    published_events = cluster.get(f"/apis/events.k8s.io/v1/namespaces/tenant-{name}/events")["items"]
    assert sorted((event["reason"], (event.get("series") or {}).get("count")) for event in published_events) == [
        ("DriftFound", 2),
        ("DriftGone", None),
    ]
    with cluster.http() as http:
        http.delete(f"/api/v1/namespaces/tenant-{name}").raise_for_status()
