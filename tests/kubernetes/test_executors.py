"""Executors of maintenance runs: a real Spark driver makes their pods, with the rights of the run's ServiceAccount.

There is no kubelet: the pods are admitted, owned by the run's pod and deleted by the driver. Where executors have work,
`ExecutorKubelet` starts them as processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.table import Table
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.control_plane import ControlPlane
from tests.kubernetes.conftest import PLACEMENT
from tests.kubernetes.executor_kubelet import ExecutorKubelet
from tests.tenant_project import MakeTenant, Tenant

SESSION = """
import json, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.appName("maintenance")
for key, value in json.load(open(sys.argv[1])).items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
print("started", flush=True)
sys.stdin.readline()
"""
RUN = f"{SESSION}session.stop()"
RUN_TASKS = f"""{SESSION}
import os, time

os.environ["PYSPARK_PYTHON"] = session.sparkContext.pythonExec = sys.executable
folder, tasks = os.path.dirname(sys.argv[1]), 9
log4j = session._jvm.org.apache.logging.log4j
log4j.core.config.Configurator.setLevel("org.apache.spark.ExecutorAllocationManager", log4j.Level.DEBUG)

def wait_for_end(_):
    while not os.path.exists(folder + "/end"):
        time.sleep(0.1)

session.sparkContext.parallelize(range(tasks), tasks).foreach(wait_for_end)
session.stop()
"""
"""It begins its tasks after a line on its standard input. They end as soon as the file `end` exists."""
SCRIPT = """
from lakewright_spark import current

session = current().spark
session.table("executions.results.numbers").writeTo("executions.results.numbers").append()
"""
RUN_POD = "run"
"""Name of the pod of a run, which owns the executors."""
MAINTENANCE: dict[str, Any] = {
    "schedule": "0 3 * * *",
    "schedules": {"compaction": "0 * * * *"},
    "executors": {"count": 2, "max_count": 3, "memory": "1Gi", "cpu": "500m", "scratch": "1Gi"},
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


@pytest.fixture
def container(tenant: Tenant, cluster: ControlPlane, namespace: str) -> Iterator[dict[str, Any]]:
    """Make the pod of a run from its CronJob, and return the pod's container."""
    del tenant
    job = cluster.get(f"/apis/batch/v1/namespaces/{namespace}/cronjobs/maintenance")["spec"]["jobTemplate"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": RUN_POD}, "spec": job["template"]["spec"]}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    with cluster.http() as http:
        response = http.post(pods, json=pod)
        assert response.is_success, response.text
        yield pod["spec"]["containers"][0]
        http.delete(f"{pods}/{RUN_POD}?gracePeriodSeconds=0").raise_for_status()


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
        "spark.kubernetes.driver.pod.name": RUN_POD,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "0s",
        "spark.ui.enabled": "false",
    }


@contextlib.contextmanager
def start_driver(properties: dict[str, str], folder: Path, program: str = RUN) -> Iterator[subprocess.Popen[bytes]]:
    """Start a session with executors. By default, a line on its standard input ends it."""
    file = folder / "properties.json"
    file.write_text(json.dumps(properties))
    with (
        (folder / "driver.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as driver,
    ):
        assert driver.stdout
        assert driver.stdout.readline() == b"started\n", (folder / "driver.log").read_text()[-3000:]
        yield driver


def wait_for_text(read: Callable[[], str], text: str, count: int) -> None:
    @retry(
        retry=retry_if_result(lambda occurrences: occurrences < count),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(90),
    )
    def count_text() -> int:
        return read().count(text)

    count_text()


def test_driver_makes_and_deletes_restricted_executors(
    container: dict[str, Any], namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    with start_driver(driver_properties(cluster, container, tmp_path, namespace), tmp_path) as driver:
        pods = wait_for_executors(cluster, namespace, 2)
        driver.communicate(b"\n", timeout=60)

    for pod in pods:
        spec = pod["spec"]
        assert pod["metadata"]["ownerReferences"][0]["name"] == RUN_POD
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "maintenance-executors"
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("maintenance", False)
        assert spec["terminationGracePeriodSeconds"] == 150
        assert spec["securityContext"]["runAsNonRoot"] is True
        (executor,) = spec["containers"]
        assert executor["securityContext"]["readOnlyRootFilesystem"] is True
        assert executor["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
        assert executor["resources"]["requests"] == executor["resources"]["limits"]
    assert wait_for_executors(cluster, namespace, 0) == []
    assert "Forbidden" not in (tmp_path / "driver.log").read_text()


def test_waiting_tasks_add_executors_up_to_the_maximum(
    container: dict[str, Any], namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    """Nine tasks need more than two executors: the driver makes a third, and no fourth while tasks still wait."""
    properties = driver_properties(cluster, container, tmp_path, namespace)
    logs, driver_log = tmp_path / "executors", tmp_path / "driver.log"
    logs.mkdir()
    with (
        start_driver(properties, tmp_path, RUN_TASKS) as driver,
        ExecutorKubelet(cluster, namespace, logs) as kubelet,
    ):
        wait_for_text(kubelet.read_logs, "Successfully registered with driver", count=2)
        first = {pod["metadata"]["name"] for pod in list_executors(cluster, namespace)}

        assert driver.stdin
        driver.stdin.write(b"\n")
        driver.stdin.flush()

        wait_for_text(kubelet.read_logs, "Successfully registered with driver", count=3)
        wait_for_text(kubelet.read_logs, "Running task", count=3)
        wait_for_text(driver_log.read_text, "target total is already 3 (limit 3)", count=1)
        running = {pod["metadata"]["name"] for pod in list_executors(cluster, namespace)}
        (tmp_path / "end").touch()
        status = driver.wait(timeout=120)

    assert status == 0, driver_log.read_text()[-3000:] + kubelet.read_logs()[-3000:]
    assert len(first) == 2
    assert len(running) == 3
    assert first < running
    assert kubelet.pods.keys() == running, "no other pod was ever made"
    assert kubelet.read_logs().count("Finished task") == 9
    assert "Forbidden" not in driver_log.read_text()


def create_fragmented_table(tenant: Tenant, name: str, files: int) -> Table:
    """Return a table in which each of many small files has one row."""
    table = tenant.catalog("executions").create_table(("results", name), pa.schema({"id": pa.int64()}))
    for number in range(files):
        table.append(pa.table({"id": [number]}))
    return table


def start_command(
    tenant: Tenant, folder: Path, properties: dict[str, str], command: str, *arguments: str
) -> subprocess.Popen[bytes]:
    """Start a command of `lakewright-spark` on this machine, with executors on the cluster."""
    config = folder / "catalog.json"
    config.write_text(tenant.output("config", "--format", "json"))
    token = folder / "token"
    token.write_text(properties.pop("spark.kubernetes.authenticate.oauthToken"))
    properties = properties | {"spark.kubernetes.authenticate.oauthTokenFile": str(token)}
    master = properties.pop("spark.master")
    confs = [word for key, value in properties.items() for word in ("--conf", f"{key}={value}")]
    command_line = [command, "--config", str(config), "--master", master, *confs, *arguments]
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "lakewright_spark.cli", *command_line],
            env=os.environ | {"HOSTNAME": RUN_POD},
            stdout=log,
            stderr=log,
        )


def test_maintenance_runs_on_executors(
    tenant: Tenant, container: dict[str, Any], namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    """Executors read and write the files of the table with the credentials that the driver's tasks bring."""
    table = create_fragmented_table(tenant, "rows", files=8)
    properties = driver_properties(cluster, container, tmp_path, namespace)

    with ExecutorKubelet(cluster, namespace, tmp_path) as kubelet:
        driver = start_command(tenant, tmp_path, properties, "maintain", "--job", "compaction")
        status = driver.wait(timeout=240)

    driver_log = (tmp_path / "driver.log").read_text()
    assert status == 0, driver_log[-3000:] + kubelet.read_logs()[-3000:]
    table.refresh()
    assert len(table.inspect.data_files()) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(8))
    assert len(kubelet.pods) in {2, 3}
    assert "Finished task" in kubelet.read_logs()
    variables = {variable["name"] for pod in kubelet.pods.values() for variable in pod["spec"]["containers"][0]["env"]}
    assert not {name for name in variables if name.startswith("AWS_")}
    for pod in kubelet.pods.values():
        assert pod["spec"]["nodeSelector"] == PLACEMENT["node_selector"]
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        assert PLACEMENT["tolerations"][0] in pod["spec"]["tolerations"]
        assert PLACEMENT["annotations"].items() <= pod["metadata"]["annotations"].items()


def test_script_runs_on_executors(
    tenant: Tenant, container: dict[str, Any], namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    """A script's frame is read and written by executors, with the credentials of its tables."""
    table = create_fragmented_table(tenant, "numbers", files=4)
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    properties = driver_properties(cluster, container, tmp_path, namespace)
    execution = ("--execution", "1", "--workflow", "1", "--no-registry")

    with ExecutorKubelet(cluster, namespace, tmp_path) as kubelet:
        driver = start_command(tenant, tmp_path, properties, "run", *execution, str(script))
        status = driver.wait(timeout=240)

    driver_log = (tmp_path / "driver.log").read_text()
    assert status == 0, driver_log[-3000:] + kubelet.read_logs()[-3000:]
    assert "Finished task" in kubelet.read_logs()
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_drained_executor_hands_over_and_ends(
    container: dict[str, Any], namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    with start_driver(driver_properties(cluster, container, tmp_path, namespace), tmp_path) as driver:
        with ExecutorKubelet(cluster, namespace, tmp_path) as kubelet:
            wait_for_text(kubelet.read_logs, "Successfully registered with driver", count=2)

            status = kubelet.drain(min(kubelet.pods))

            wait_for_text((tmp_path / "driver.log").read_text, "decommissioned message", count=1)
        driver.communicate(b"\n", timeout=60)
    assert status == 0, kubelet.read_logs()[-3000:]


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
