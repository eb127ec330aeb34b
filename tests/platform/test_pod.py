"""The process cluster starts, counts and stops sidecars as a kubelet does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.platform.images import Image, ImageStore
from tests.platform.network import PodNetwork
from tests.platform.pod import Pod

PROXY = """
import http.server, os, signal, socketserver, sys

def write(line):
    with open("/events/lines", "a") as file:
        file.write(line + chr(10))

def end(*_):
    write("proxy ends")
    sys.exit()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/startup" or os.path.exists("/events/connected") else 503)
        self.end_headers()

write("proxy starts")
signal.signal(signal.SIGTERM, end)
server = socketserver.TCPServer(("0.0.0.0", 9801), Handler)
write("proxy listens")
server.serve_forever()
"""
SERVER = """
trap 'echo server ends >> /events/lines; exit' TERM
echo server starts >> /events/lines
while :; do sleep 0.1; done
"""
StartPod = Callable[..., Pod]


def make_container(name: str, *command: str, **parts: Any) -> dict[str, Any]:
    mounts = [{"name": "events", "mountPath": "/events"}]
    return {
        "name": name,
        "image": "machine",
        "command": [*command],
        "securityContext": {},
        "volumeMounts": mounts,
    } | parts


def make_proxy(**parts: Any) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/startup", "port": 9801}, "periodSeconds": 1, "failureThreshold": 60}
    return make_container("proxy", "/usr/bin/python3", "-c", PROXY, restartPolicy="Always", startupProbe=probe, **parts)


def read_events(pod: Pod) -> list[str]:
    file = pod.folder / "volumes" / "events" / "lines"
    return file.read_text().splitlines() if file.exists() else []


@retry(retry=retry_if_result(lambda result: not result), wait=wait_fixed(0.1), stop=stop_after_delay(30))
def wait_for_condition(condition: Callable[[], bool]) -> bool:
    return condition()


@pytest.fixture
def start_pod(folder: Path, network: PodNetwork, request: pytest.FixtureRequest) -> Iterator[StartPod]:
    """Start a pod of containers, with a volume for their events."""
    pods: list[Pod] = []

    def start(**parts: Any) -> Pod:
        context = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
        spec = {"volumes": [{"name": "events", "emptyDir": {}}], "securityContext": context, **parts}
        name, images = f"pod-{request.node.name.replace('_', '-')}"[:40], ImageStore({"machine": Image()})
        pod = Pod(name, {"spec": spec}, folder / name, network, images, lambda kind, name: {kind: name})
        pods.append(pod)
        pod.start()
        return pod

    yield start
    for pod in pods:
        if pod.terminating_since is None:
            pod.kill()


@pytest.mark.parametrize("code", [0, 3])
def test_job_ends_its_sidecar_last(start_pod: StartPod, code: int) -> None:
    wait = make_container("wait", "/bin/sh", "-c", "echo wait >> /events/lines")
    migrate = make_container("migrate", "/bin/sh", "-c", f"echo migrate >> /events/lines; exit {code}")

    pod = start_pod(initContainers=[make_proxy(), wait], containers=[migrate], restartPolicy="Never")

    assert pod.wait_until_ended(30) == code, pod.read_logs()
    assert read_events(pod) == ["proxy starts", "proxy listens", "wait", "migrate", "proxy ends"]


def test_pod_is_ready_with_its_sidecar(start_pod: StartPod) -> None:
    readiness = {"httpGet": {"path": "/readiness", "port": 9801}, "periodSeconds": 1}
    server = make_container("server", "/bin/sh", "-c", SERVER)

    pod = start_pod(initContainers=[make_proxy(readinessProbe=readiness)], containers=[server])

    wait_for_condition(lambda: "server starts" in read_events(pod) and "server" in pod.ready_containers)
    assert not pod.is_ready
    (pod.folder / "volumes" / "events" / "connected").touch()
    wait_for_condition(lambda: pod.is_ready)
    pod.terminate()
    assert read_events(pod)[-2:] == ["server ends", "proxy ends"]
    assert pod.restarts == 0
