"""The pod of a computing unit as a process: rendered command, variables and mounts in a mount namespace."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from lakewright_sandbox.runtime.processes import free_port
from lakewright_spark.session import jars
from waiting import wait_until

from tests.child_processes import stop_process

PORT_VARIABLE = "LAKEWRIGHT_CONNECT_PORT"
"""Chooses the port where several units share a machine's network."""

_UNSHARE = ["unshare", "--mount", "--propagation", "private"]
_AS_ROOT = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


def cannot_unshare() -> str | None:
    """Return why this machine allows no mount namespace; None if it does."""
    if shutil.which("unshare") is None:
        return "needs unshare of util-linux"
    probe = [*_UNSHARE, *_AS_ROOT, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    run = subprocess.run(probe, capture_output=True, text=True, check=False)
    return f"this machine allows no mount namespace: {run.stderr.strip()}" if run.returncode else None


def read_manifests(folder: Path) -> list[dict[str, Any]]:
    """Return all manifests that a stack rendered."""
    return [yaml.safe_load(file.read_text()) for file in sorted(folder.rglob("*.yaml"))]


@dataclass(frozen=True)
class UnitPod:
    """Pod of the only Deployment in the manifests. `folder` gets its volumes and its log."""

    manifests: list[dict[str, Any]]
    folder: Path
    secrets: Mapping[str, Mapping[str, str]]
    """Text of the files of Secrets that the stack does not make, by Secret and key."""
    token: str
    """Projected token of the ServiceAccount."""
    image: Mapping[str, str]
    """Variables of the image."""
    container_name: str | None = None
    """Container to run. Default: the first."""
    as_pod_user: bool = False
    """Whether the command runs as the pod's user where the tests run as root. Otherwise it runs as the tests' user."""

    @property
    def spec(self) -> dict[str, Any]:
        (deployment,) = (manifest for manifest in self.manifests if manifest["kind"] == "Deployment")
        return deployment["spec"]["template"]["spec"]

    @property
    def security(self) -> dict[str, Any] | None:
        """Security context of the pod with the command's user; None for the user of the tests."""
        return self.spec["securityContext"] if self.as_pod_user and not _AS_ROOT else None

    @property
    def container(self) -> dict[str, Any]:
        return self.find_container(self.container_name or self.spec["containers"][0]["name"])

    def find_container(self, name: str) -> dict[str, Any]:
        containers = [*self.spec.get("initContainers", []), *self.spec["containers"]]
        return next(container for container in containers if container["name"] == name)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def secret(self, name: str) -> dict[str, str]:
        """Return the texts of a Secret's keys."""
        if name in self.secrets:
            return dict(self.secrets[name])
        (manifest,) = (m for m in self.manifests if m["kind"] == "Secret" and m["metadata"]["name"] == name)
        return {key: base64.b64decode(value).decode() for key, value in manifest["data"].items()}

    def read_variables(self, container: str) -> dict[str, str]:
        """Return the variables of a container, with the texts of Secrets that it reads."""
        return {entry["name"]: self._read_variable(entry) for entry in self.find_container(container).get("env", [])}

    def _read_variable(self, entry: dict[str, Any]) -> str:
        match entry:
            case {"value": text}:
                return text
            case {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}:
                return self.secret(name)[key]
            case _:
                raise AssertionError(f"expected a value or a key of a Secret, found {entry}")

    def renew(self, volume: str, file: str, text: str) -> None:
        """Replace a file of a volume in one step, as Kubernetes does."""
        fresh = self.folder / "fresh"
        fresh.write_text(text)
        self._share(fresh)
        fresh.replace(self.folder / "volumes" / volume / file)

    @contextmanager
    def run(self, manifest_port: int | None = None) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Run the container's command until the block ends; yield process and port once it accepts connections.

        `manifest_port` is the port that the manifests name. Default: a free port, in PORT_VARIABLE.
        """
        port = manifest_port or free_port()
        root, description = self.folder / "root", self.folder / "pod.json"
        root.mkdir()
        variables = self.read_variables(self.container["name"])
        document = {
            "root": str(root),
            "mounts": self._mounts(),
            "image": [str(folder) for folder in image_folders()],
            "environment": {**self.image, **variables, PORT_VARIABLE: str(port)},
            "command": self.container["command"],
            "security": self.security,
        }
        description.write_text(json.dumps(document))
        command = [*_UNSHARE, *_AS_ROOT, sys.executable, str(Path(__file__).with_name("pod_root.py")), str(description)]
        with self.log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: process.poll() is not None or _accepts(port))
            assert process.poll() is None, self.log.read_text()[-3000:]
            yield process, port
        finally:
            stop_process(process)

    def _mounts(self) -> dict[str, dict[str, Any]]:
        volumes = {volume["name"]: self._volume(volume) for volume in self.spec["volumes"]}
        mounts: dict[str, dict[str, Any]] = {}
        for mount in self.container["volumeMounts"]:
            folder = volumes[mount["name"]] / mount.get("subPath", "")
            folder.mkdir(exist_ok=True)
            mounts[mount["mountPath"]] = {"folder": str(folder), "read_only": mount.get("readOnly", False)}
        return mounts

    def _volume(self, volume: dict[str, Any]) -> Path:
        folder = self.folder / "volumes" / volume["name"]
        folder.mkdir(parents=True)
        match volume:
            case {"configMap": {"name": name}}:
                (manifest,) = (m for m in self.manifests if m["kind"] == "ConfigMap" and m["metadata"]["name"] == name)
                files = manifest["data"]
            case {"secret": {"secretName": name, **rest}}:
                keys = self.secret(name)
                items = rest.get("items") or [{"key": key, "path": key} for key in keys]
                files = {item["path"]: keys[item["key"]] for item in items}
            case {"projected": {"sources": [{"serviceAccountToken": {"path": path}}]}}:
                files = {path: self.token}
            case _:
                assert "emptyDir" in volume
                files = {}
        for name, text in files.items():
            (folder / name).write_text(text)
        for path in (folder, *folder.iterdir()):
            self._share(path)
        return folder

    def _share(self, path: Path) -> None:
        """Give a file or folder of a volume to the group of the pod's volumes, as a kubelet does."""
        if self.security:
            os.chown(path, -1, self.security["fsGroup"])
            path.chmod(0o2770 if path.is_dir() else 0o640)


def image_variables() -> dict[str, str]:
    """Return the variables of an image that has this Python environment and these jars."""
    java = shutil.which("java") or "/usr/bin/java"
    path = [str(Path(sys.executable).parent), str(Path(java).parent), "/usr/bin", "/bin"]
    java_options = {
        name: os.environ[name] for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS") if name in os.environ
    }
    image = {"PATH": ":".join(dict.fromkeys(path)), "LAKEWRIGHT_IVY": str(jars.ivy_home()), "LANG": "C.UTF-8"}
    return {**image, **java_options}


def image_folders() -> set[Path]:
    """Return the folders of this machine that play the image's files: interpreter, packages and jars."""
    return {Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix), jars.ivy_home()}


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
