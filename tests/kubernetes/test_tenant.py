"""A tenant with units and maintenance jobs on a real API server, by the sandbox's provider and by the real plugin."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.control_plane import ControlPlane
from tests.tenant_project import MakeTenant, Tenant, list_changes

UNITS: list[dict[str, Any]] = [
    {"name": "notebook", "runtime": "spark", "size": {"cpu": "1", "memory": "2Gi"}, "warehouse": "executions"},
    {"name": "workflows", "runtime": "texera", "size": {"cpu": "1", "memory": "2Gi", "shm": "512Mi"}}
    | {"warehouses": "all"},
]


STANDBY = {
    "executions": {
        "schedule": "30 2 * * *",
        "config": {"name": "standby"},
        "secret": {"name": "standby-keys"},
        "egress": ["https://lakekeeper.standby.example"],
        "max_lag": "26h",
    }
}


@pytest.fixture(scope="module")
def tenant(make_tenant: MakeTenant) -> Tenant:
    """A tenant that is deployed on the cluster."""
    tenant = make_tenant(computing_units=UNITS, maintenance={"schedule": "0 3 * * *", "standby": STANDBY})
    tenant.up()
    return tenant


@pytest.fixture
def apps(cluster: ControlPlane) -> Any:
    return kubernetes_client.AppsV1Api(cluster.api_client())


def manifests(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the manifests of the stack's Kubernetes objects, without Secrets, which are encrypted in the state."""
    state = json.loads(tenant.output("stack", "export"))
    resources = [
        resource
        for resource in state["deployment"]["resources"]
        if resource["type"].startswith("kubernetes:") and resource["type"] != "kubernetes:core/v1:Secret"
    ]
    return [resource["outputs"]["__inputs"] for resource in resources]


def collection(manifest: dict[str, Any]) -> str:
    """Return the path of the collection of a manifest's object."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    plural = kind.lower().removesuffix("y") + "ies" if kind.endswith("y") else kind.lower() + "s"
    namespace = manifest["metadata"].get("namespace")
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{within}/{plural}"


def test_every_manifest_is_accepted_without_warning(tenant: Tenant, cluster: ControlPlane) -> None:
    tenant_manifests = manifests(tenant)

    with cluster.http() as http:
        responses = {
            f"{manifest['kind']} {manifest['metadata']['name']}": http.patch(
                f"{collection(manifest)}/{manifest['metadata']['name']}",
                params={"fieldManager": "tests", "force": "true", "dryRun": "All", "fieldValidation": "Strict"},
                content=json.dumps(manifest),
                headers={"content-type": "application/apply-patch+yaml"},
            )
            for manifest in tenant_manifests
        }

    assert {"Namespace", "NetworkPolicy", "ServiceAccount", "ConfigMap", "Service", "Deployment", "CronJob"} <= {
        manifest["kind"] for manifest in tenant_manifests
    }
    refused = {name: response.text for name, response in responses.items() if response.is_error}
    assert not refused
    assert {name: response.headers.get("warning") for name, response in responses.items()} == dict.fromkeys(responses)


def test_units_become_available(namespace: str, apps: Any) -> None:
    @retry(retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(60))
    def unavailable() -> set[str]:
        deployments = apps.list_namespaced_deployment(namespace).items
        available = {deployment.metadata.name for deployment in deployments if deployment.status.available_replicas}
        return {unit["name"] for unit in UNITS} - available

    assert not unavailable()


def test_privileged_pods_are_refused(namespace: str, cluster: ControlPlane) -> None:
    container = {"name": "shell", "image": "busybox", "securityContext": {"privileged": True}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shell"},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }

    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{namespace}/pods", json=pod)

    assert response.status_code == httpx.codes.FORBIDDEN, response.text
    assert "PodSecurity" in response.json()["message"]


def test_drift_is_found_and_healed(tenant: Tenant, namespace: str, cluster: ControlPlane) -> None:
    core = kubernetes_client.CoreV1Api(cluster.api_client())
    apps = kubernetes_client.AppsV1Api(cluster.api_client())
    networking = kubernetes_client.NetworkingV1Api(cluster.api_client())
    core.patch_namespaced_config_map("notebook-catalog", namespace, {"data": {"catalog.json": "{}"}})
    networking.patch_namespaced_network_policy("notebook", namespace, {"spec": {"egress": [{}]}})
    apps.patch_namespaced_deployment_scale("workflows", namespace, {"spec": {"replicas": 3}})

    changes = list_changes(tenant.verb("preview", "--refresh"))
    tenant.up("--refresh")

    drifted = {(operation, kind) for operation, kind, _name in changes}
    assert drifted == {("update", "ConfigMap"), ("update", "NetworkPolicy"), ("update", "Deployment")}
    assert list_changes(tenant.verb("preview", "--refresh")) == set()
    assert core.read_namespaced_config_map("notebook-catalog", namespace).data["catalog.json"] != "{}"
    assert apps.read_namespaced_deployment_scale("workflows", namespace).spec.replicas == 1


def test_destroy_leaves_nothing(tenant: Tenant, namespace: str, cluster: ControlPlane) -> None:
    """This test is the last one: it ends the module's tenant."""
    tenant.verb("destroy", "--yes")

    with cluster.http() as http:
        assert namespace not in {item["metadata"]["name"] for item in http.get("/api/v1/namespaces").json()["items"]}
