"""The activator as a process, with the rights of its ServiceAccount, on a real API server."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from lakewright_sandbox.runtime.processes import free_port
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.control_plane import ControlPlane
from tests.tenant_project import MakeTenant, Tenant, list_changes

UNITS: list[dict[str, Any]] = [
    {"name": "notebook", "runtime": "spark", "warehouse": "executions", "idle_after": "30m"},
    {"name": "always", "runtime": "spark", "warehouse": "executions"},
]
CHANGED = [UNITS[0] | {"size": "small"}, UNITS[1]]


@pytest.fixture(scope="module")
def tenant(make_tenant: MakeTenant) -> Tenant:
    tenant = make_tenant(computing_units=UNITS)
    tenant.up()
    return tenant


class Pod(threading.Thread):
    """A unit's pod: it echoes while the Deployment's scale is above zero, as a kubelet would run it."""

    def __init__(self, cluster: ControlPlane, namespace: str, port: int) -> None:
        super().__init__(daemon=True)
        self._cluster, self._namespace, self._port = cluster, namespace, port
        self._end = threading.Event()

    def __enter__(self) -> Pod:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self.join()

    def run(self) -> None:
        server: socket.socket | None = None
        while not self._end.wait(0.05):
            replica_count = replicas(self._cluster, self._namespace, "notebook")
            if replica_count and server is None:
                server = socket.create_server(("127.0.0.1", self._port))
                threading.Thread(target=echo, args=(server,), daemon=True).start()
            if not replica_count and server:
                stop(server)
                server = None
        if server:
            stop(server)


def stop(server: socket.socket) -> None:
    # Ends the `accept` that another thread waits in, which would keep the port.
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def echo(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(connection.recv(1000))


def replicas(cluster: ControlPlane, namespace: str, deployment: str) -> int:
    with cluster.http() as http:
        response = http.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}/scale")
    return response.raise_for_status().json()["spec"].get("replicas", 0)


def request_activator_token(cluster: ControlPlane, namespace: str) -> str:
    with cluster.http() as http:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        response = http.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/activator/token", json=request)
    return response.raise_for_status().json()["status"]["token"]


@contextlib.contextmanager
def activator(cluster: ControlPlane, namespace: str, folder: Path, pod_port: int) -> Iterator[int]:
    """Run the activator with the configuration in the cluster, for a unit on loopback; yield the unit's port."""
    with cluster.http() as http:
        config_map = http.get(f"/api/v1/namespaces/{namespace}/configmaps/activator").raise_for_status().json()
    config = json.loads(config_map["data"]["activator.json"])
    (unit,) = config["units"]
    listen = free_port()
    unit |= {"host": "127.0.0.1", "port": pod_port, "listen": listen, "idle_seconds": 1.5}
    config |= {"address": "127.0.0.1", "health_port": free_port()}
    (folder / "activator.json").write_text(json.dumps(config))
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": request_activator_token(cluster, namespace)}
    (folder / "kubeconfig").write_text(yaml.safe_dump(document))
    command = [sys.executable, "-m", "lakewright_spark.cli", "activate", "--config", str(folder / "activator.json")]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")}, stderr=log)
    try:
        yield listen
    finally:
        process.terminate()
        assert process.wait(20) == 0, (folder / "log").read_text()


def call_unit(port: int, text: bytes) -> bytes:
    """Return the answer of a unit, as soon as the activator listens."""

    @retry(retry=retry_if_result(lambda response: response is None), wait=wait_fixed(0.2), stop=stop_after_delay(30))
    def ask() -> bytes | None:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        except ConnectionRefusedError:
            return None
        with connection:
            connection.sendall(text)
            return connection.recv(1000)

    return ask() or b""


def wait_for_replicas(cluster: ControlPlane, namespace: str, count: int) -> None:
    @retry(
        retry=retry_if_result(lambda replica_count: replica_count != count),
        wait=wait_fixed(0.1),
        stop=stop_after_delay(30),
    )
    def read_replicas() -> int:
        return replicas(cluster, namespace, "notebook")

    read_replicas()


def test_unit_stops_without_traffic_and_starts_on_use(
    tenant: Tenant, namespace: str, cluster: ControlPlane, tmp_path: Path
) -> None:
    """An `up` in between neither starts the stopped unit nor reports its number of pods as drift."""
    port = free_port()
    with Pod(cluster, namespace, port), activator(cluster, namespace, tmp_path, port) as listen:
        assert call_unit(listen, b"first") == b"first"
        wait_for_replicas(cluster, namespace, 0)

        tenant.spec["computing_units"] = CHANGED
        tenant.write()
        assert ("update", "Deployment", f"{tenant.name}-notebook") in list_changes(tenant.up())
        assert replicas(cluster, namespace, "notebook") == 0, "an update does not start it"
        assert list_changes(tenant.verb("preview", "--refresh")) == set(), "its number of pods is no drift"

        assert call_unit(listen, b"second") == b"second"


def test_activator_may_scale_idle_units_only(namespace: str, cluster: ControlPlane, tenant: Tenant) -> None:
    del tenant
    base = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    scale = {"spec": {"replicas": 0}}
    merge = {"content-type": "application/merge-patch+json"}
    with cluster.http(request_activator_token(cluster, namespace)) as http:
        allowed = http.patch(f"{base}/notebook/scale", json=scale, headers=merge, params={"dryRun": "All"})
        refused = [
            http.patch(f"{base}/always/scale", json=scale, headers=merge),
            http.patch(f"{base}/notebook", json=scale, headers=merge),
            http.delete(f"{base}/notebook"),
            http.get(f"/api/v1/namespaces/{namespace}/secrets"),
            http.get("/api/v1/namespaces/kube-system/configmaps"),
        ]

    assert allowed.is_success, allowed.text
    assert [response.status_code for response in refused] == [httpx.codes.FORBIDDEN] * len(refused)
