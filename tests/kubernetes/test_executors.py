"""Executors of maintenance runs: a real Spark driver makes their pods, with the rights of the run's ServiceAccount.

No executor starts, as there is no kubelet: the pods are admitted, owned by the run's pod and deleted by the driver.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.kubernetes.control_plane import ControlPlane
from tests.tenant_project import MakeTenant, Tenant

RUN = """
import json, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.appName("maintenance")
for key, value in json.load(open(sys.argv[1])).items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
print("started", flush=True)
sys.stdin.readline()
session.stop()
"""
MAINTENANCE: dict[str, Any] = {
    "schedule": "0 3 * * *",
    "schedules": {"compaction": "0 * * * *"},
    "executors": {"count": 2, "memory": "1Gi", "cpu": "500m", "scratch": "1Gi"},
}


@pytest.fixture(scope="module")
def tenant(make_tenant: MakeTenant) -> Tenant:
    tenant = make_tenant(maintenance=MAINTENANCE)
    tenant.up()
    return tenant


def list_executors(cluster: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    return cluster.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=spark-role=executor")["items"]


def wait_for_executors(cluster: ControlPlane, namespace: str, count: int) -> list[dict[str, Any]]:
    @retry(
        retry=retry_if_result(lambda executors: len(executors) != count),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(60),
    )
    def read_executors() -> list[dict[str, Any]]:
        return list_executors(cluster, namespace)

    return read_executors()


def request_run_token(cluster: ControlPlane, namespace: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/maintenance/token", json=request)
    return response.raise_for_status().json()["status"]["token"]


def start_run(cluster: ControlPlane, namespace: str) -> tuple[str, dict[str, Any]]:
    """Make the pod of a run from its CronJob; return its name and its container."""
    job = cluster.get(f"/apis/batch/v1/namespaces/{namespace}/cronjobs/maintenance")["spec"]["jobTemplate"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "run"}, "spec": job["template"]["spec"]}
    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{namespace}/pods", json=pod)
    assert response.is_success, response.text
    return "run", pod["spec"]["containers"][0]


def driver_properties(cluster: ControlPlane, container: dict[str, Any], folder: Path, namespace: str) -> dict[str, str]:
    """Return the properties of the CronJob's arguments, with the addresses and files of this machine."""
    arguments: list[str] = container["args"]
    properties = dict(argument.split("=", 1) for argument in arguments if argument.startswith("spark."))
    template = folder / "pod.yaml"
    template.write_text(
        cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/maintenance-executors")["data"]["pod.yaml"]
    )
    return properties | {
        "spark.master": f"k8s://{cluster.endpoint}",
        "spark.kubernetes.authenticate.caCertFile": str(cluster.ca),
        "spark.kubernetes.authenticate.oauthToken": request_run_token(cluster, namespace),
        "spark.kubernetes.executor.podTemplateFile": str(template),
        "spark.kubernetes.driver.pod.name": "run",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "0s",
        "spark.ui.enabled": "false",
    }


def test_driver_makes_and_deletes_restricted_executors(
    tenant: Tenant, namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    del tenant
    run, container = start_run(cluster, namespace)
    properties = tmp_path / "properties.json"
    properties.write_text(json.dumps(driver_properties(cluster, container, tmp_path, namespace)))
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(properties)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as driver,
    ):
        assert driver.stdout
        assert driver.stdout.readline() == b"started\n", (tmp_path / "log").read_text()[-3000:]
        pods = wait_for_executors(cluster, namespace, 2)
        driver.communicate(b"\n", timeout=60)

    for pod in pods:
        spec = pod["spec"]
        assert pod["metadata"]["ownerReferences"][0]["name"] == run
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "maintenance-executors"
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("maintenance", False)
        assert spec["securityContext"]["runAsNonRoot"] is True
        (executor,) = spec["containers"]
        assert executor["securityContext"]["readOnlyRootFilesystem"] is True
        assert executor["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
        assert executor["resources"]["requests"] == executor["resources"]["limits"]
    assert wait_for_executors(cluster, namespace, 0) == []
    assert "Forbidden" not in (tmp_path / "log").read_text()


def test_run_may_make_pods_and_nothing_else(tenant: Tenant, namespace: str, cluster: ControlPlane) -> None:
    del tenant
    with cluster.http(request_run_token(cluster, namespace)) as http:
        refused = [
            http.get(f"/api/v1/namespaces/{namespace}/secrets"),
            http.get(f"/api/v1/namespaces/{namespace}/pods/run/log"),
            http.post(f"/api/v1/namespaces/{namespace}/pods/run/exec?command=sh"),
            http.get("/api/v1/namespaces/kube-system/pods"),
            http.get(f"/apis/batch/v1/namespaces/{namespace}/cronjobs"),
        ]
        allowed = http.get(f"/api/v1/namespaces/{namespace}/pods")

    assert [response.status_code for response in refused] == [httpx.codes.FORBIDDEN] * len(refused)
    assert allowed.is_success
