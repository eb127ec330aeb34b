"""Starts the containers of Spark executors as processes, as a kubelet does, with the images' entrypoint.

Each executor has an address of its own on loopback. Volumes `emptyDir` are folders; other volumes are refused, so that
a new mount of executors is noticed here.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import pyspark

from tests.control_plane import ControlPlane

ENTRYPOINT = Path(__file__).parents[2] / "images" / "entrypoint.sh"
SPARK_CONFIGURATION = "/opt/spark/conf"
"""Mount of the driver's properties, which Spark adds to each executor."""


class ExecutorKubelet(threading.Thread):
    """Runs the executors of one namespace: starts new pods, stops deleted pods."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        """Prepare the thread; `with` starts and stops it.

        Args:
            plane: The control plane.
            namespace: Namespace of the executors.
            folder: Folder for volumes and logs.
        """
        super().__init__(name="executor-kubelet", daemon=True)
        self._plane, self._namespace, self._folder = plane, namespace, folder
        self._end = threading.Event()
        self._addresses = (f"127.0.1.{number}" for number in itertools.count(1))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        """Pods that were started, by name."""

    def __enter__(self) -> ExecutorKubelet:
        """Start the thread."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the thread and all executors."""
        self._end.set()
        self.join()
        for name in list(self._processes):
            self.stop(name)

    def run(self) -> None:
        """Start and stop executors until the end."""
        path = f"/api/v1/namespaces/{self._namespace}/pods?labelSelector=spark-role=executor"
        while not self._end.wait(0.2):
            with contextlib.suppress(httpx.HTTPError):
                pods = {pod["metadata"]["name"]: pod for pod in self._plane.get(path)["items"]}
                for name, pod in pods.items():
                    if name not in self.pods and "deletionTimestamp" not in pod["metadata"]:
                        self._start_executor(name, pod)
                for name in self._processes.keys() - pods.keys():
                    self.stop(name)

    def stop(self, name: str) -> None:
        """Stop one executor at once, as the loss of its node does."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def drain(self, name: str) -> int:
        """Let an executor hand over its blocks, as `images/decommission.sh` does; return its exit code."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGPWR)
        return process.wait(timeout=60)

    def read_logs(self) -> str:
        """Return the logs of all executors."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log")))

    def _start_executor(self, name: str, pod: dict[str, Any]) -> None:
        self.pods[name] = pod
        (container,) = pod["spec"]["containers"]
        address, folder = next(self._addresses), self._folder / name
        folders = self._make_volumes(pod["spec"], container, folder)
        java = shutil.which("java")
        assert java
        environ = {
            "PATH": os.environ["PATH"],
            "JAVA_HOME": os.environ.get("JAVA_HOME") or str(Path(java).resolve().parents[1]),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
        }
        for variable in container["env"]:
            environ[variable["name"]] = self._read_variable(variable, name, address)
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                ["bash", str(ENTRYPOINT), *container["args"]],
                env={key: folders.get(value, value) for key, value in environ.items()},
                cwd=folder,
                stdout=log,
                stderr=log,
            )

    def _read_variable(self, variable: dict[str, Any], name: str, address: str) -> str:
        if "value" in variable:
            return variable["value"]
        source = variable.get("valueFrom")
        if source is None:
            return ""
        fields = {"status.podIP": address, "metadata.name": name}
        return fields[source["fieldRef"]["fieldPath"]]

    def _make_volumes(self, spec: dict[str, Any], container: dict[str, Any], folder: Path) -> dict[str, str]:
        """Return a folder for each mount of an `emptyDir`, by the path in the container."""
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        folders: dict[str, str] = {}
        for mount in container["volumeMounts"]:
            if mount["mountPath"] == SPARK_CONFIGURATION:
                continue
            assert "emptyDir" in volumes[mount["name"]], f"unexpected volume of executors: {volumes[mount['name']]}"
            path = folder / mount["name"] / mount.get("subPath", "")
            path.mkdir(parents=True, exist_ok=True)
            folders[mount["mountPath"]] = str(path)
        return folders
