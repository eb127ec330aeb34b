"""One pod: its containers run as processes with their own network, file system, user and probes.

Every container has a network namespace with the pod's address, a read-only view of this machine's files with the pod's
volumes at their paths, the pod's user and groups, and no capabilities. Memory limits are not applied.
"""

from __future__ import annotations

import base64
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.platform.images import Image, ImageStore
from tests.platform.network import PodNetwork
from tests.platform.probes import run_probe

BACKOFF_SECONDS = 1.0
"""Time until a container that ended is started again."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FindObject = Callable[[str, str], dict[str, Any]]
"""Returns the manifest of a kind and name."""


@dataclass
class Pod:
    """A pod of a template. `start` returns at once; `wait_until_ended` and `is_ready` report what became of it."""

    name: str
    template: dict[str, Any]
    folder: Path
    network: PodNetwork
    images: ImageStore
    find: FindObject
    terminating_since: float | None = None
    restarts: int = 0
    exit_code: int | None = None
    """Exit code of the pod, if its containers are not restarted."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, subprocess.Popen[bytes]])
    """Running processes by container."""
    started_containers: set[str] = field(default_factory=set[str])
    """Containers whose startup probe has succeeded, if they have such a probe."""
    ready_containers: dict[str, float] = field(default_factory=dict[str, float])
    """Times since when containers are ready, by container."""

    def __post_init__(self) -> None:
        self.spec: dict[str, Any] = self.template["spec"]
        init_containers: list[dict[str, Any]] = self.spec.get("initContainers", [])
        self._sidecars = [container for container in init_containers if is_sidecar(container)]
        self.address = self.network.add_pod(self.name)
        self.folder.mkdir(parents=True)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def ready_since(self) -> float | None:
        """Time since when all containers and sidecars are ready; None if a container is not ready."""
        ready_containers = dict(self.ready_containers)
        names = {container["name"] for container in (*self._sidecars, *self.spec["containers"])}
        return max(ready_containers.values()) if names <= ready_containers.keys() else None

    @property
    def is_ready(self) -> bool:
        """Whether the pod is ready and not terminating."""
        return self.ready_since is not None and self.terminating_since is None

    def start(self) -> None:
        """Start init containers, then containers, in a thread."""
        for volume in self.spec.get("volumes", []):
            self._write_volume(volume)
        self._thread.start()

    def wait_until_ended(self, seconds: float) -> int:
        """Return the exit code of a pod that is not restarted, such as of a Job."""
        assert self._ended.wait(seconds), f"{self.name} still runs after {seconds} s:\n{self.read_logs()}"
        return self.exit_code or 0

    def wait_for_output(self, container: str, seconds: float = 60) -> None:
        """Wait until a container has written a line."""
        deadline, file = time.monotonic() + seconds, self.folder / f"{container}.log"
        while not (file.is_file() and file.read_text()):
            assert time.monotonic() < deadline, f"{self.name}: no output of {container}:\n{self.read_logs()}"
            time.sleep(0.1)

    def read_logs(self) -> str:
        """Return the output of all containers."""
        return "\n".join(f"== {file.stem}\n{file.read_text()}" for file in sorted(self.folder.glob("*.log")))

    def kill(self) -> None:
        """Kill the processes, as the loss of a node does. The pod is not started again."""
        self.terminating_since = time.monotonic()
        for process in list(self.processes.values()):
            process.kill()
        self._finish()

    def terminate(self) -> None:
        """End the pod as a kubelet does: preStop, the stop signal, and SIGKILL after the grace period."""
        self.terminating_since = time.monotonic()
        deadline = self.terminating_since + self._grace_seconds
        stops = [
            threading.Thread(target=self._stop, args=(container, deadline)) for container in self.spec["containers"]
        ]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        self._stop_sidecars(deadline)
        self._finish()

    @property
    def _grace_seconds(self) -> float:
        return self.spec.get("terminationGracePeriodSeconds", 30)

    def _stop_sidecars(self, deadline: float) -> None:
        """Stop sidecars in the reverse order of their start, after all other containers have ended."""
        for container in reversed(self._sidecars):
            self._stop(container, deadline)

    def _finish(self) -> None:
        for process in list(self.processes.values()):
            process.wait()
        self._ended.set()
        self._thread.join(10)
        self.network.remove_pod(self.name)

    def _stop(self, container: dict[str, Any], deadline: float) -> None:
        process = self.processes.get(container["name"])
        if process is None:
            return
        if hook := container.get("lifecycle", {}).get("preStop"):
            time.sleep(hook["sleep"]["seconds"])
        process.send_signal(self.images.find_image(container["image"]).stop_signal)
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()

    def _run(self) -> None:
        """Run the pod until it is terminated, or until its containers ended and are not restarted."""
        restarts_containers = self.spec.get("restartPolicy", "Always") != "Never"
        for container in self.spec.get("initContainers", []):
            if is_sidecar(container):
                self._start_sidecar(container)
                continue
            while self.terminating_since is None and (code := self._run_once(container)) != 0:
                if not restarts_containers:
                    self._end(code)
                    return
                self._ended.wait(BACKOFF_SECONDS)
        watchers = [
            threading.Thread(
                target=self._watch, args=(container,), kwargs={"restarts": restarts_containers}, daemon=True
            )
            for container in self.spec["containers"]
        ]
        for watcher in watchers:
            watcher.start()
        for watcher in watchers:
            watcher.join()
        if self.terminating_since is None:
            self._end(self.exit_code or 0)

    def _end(self, code: int) -> None:
        """End a pod whose containers are not restarted."""
        self.exit_code = code
        self.terminating_since = time.monotonic()
        self._stop_sidecars(self.terminating_since + self._grace_seconds)
        self._ended.set()

    def _start_sidecar(self, container: dict[str, Any]) -> None:
        """Start a sidecar, which is always restarted, and wait until its startup probe has succeeded."""
        threading.Thread(target=self._watch, args=(container,), kwargs={"restarts": True}, daemon=True).start()
        while self.terminating_since is None and container["name"] not in self.started_containers:
            self._ended.wait(0.1)

    def _run_once(self, container: dict[str, Any]) -> int:
        return self._start_container(container).wait()

    def _watch(self, container: dict[str, Any], *, restarts: bool) -> None:
        """Start a container, probe it, and start it again after it ended."""
        while self.terminating_since is None:
            process = self._start_container(container)
            _Prober(self, container, process).run()
            self.ready_containers.pop(container["name"], None)
            if self.terminating_since is not None:
                return
            if not restarts:
                self.exit_code = self.exit_code or process.wait()
                return
            self.restarts += 1
            self._ended.wait(BACKOFF_SECONDS)

    def _start_container(self, container: dict[str, Any]) -> subprocess.Popen[bytes]:
        image = self.images.find_image(container["image"])
        command = [*container.get("command", image.entrypoint), *container.get("args", [])]
        script = "\n".join([*self._list_mounts(container, image), self._format_start(command)])
        environ = {"PATH": _PATH, **image.environment, **self.read_environment(container)}
        file = self.folder / f"{container['name']}.log"
        file.touch()
        file.chmod(0o666)  # nginx opens /dev/stderr again, as its user
        with file.open("ab") as log:
            process = subprocess.Popen(
                ["/usr/sbin/ip", "netns", "exec", self.name, "/bin/sh", "-c", script],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[container["name"]] = process
        return process

    def read_environment(self, container: dict[str, Any]) -> dict[str, str]:
        """Return the variables of a container, with the values of Secrets and ConfigMaps."""
        values: dict[str, str] = {}
        for source in container.get("envFrom", []):
            kind, field = ("Secret", "secretRef") if "secretRef" in source else ("ConfigMap", "configMapRef")
            texts = self._read_texts(kind, source[field]["name"])
            values |= {f"{source.get('prefix', '')}{key}": text for key, text in texts.items()}
        for entry in container.get("env", []):
            values[entry["name"]] = self._read_value(entry)
        return values

    def _read_texts(self, kind: str, name: str) -> dict[str, str]:
        """Return the texts of a Secret or ConfigMap by key."""
        data: dict[str, str] = self.find(kind, name)["data"]
        if kind == "ConfigMap":
            return data
        return {key: base64.b64decode(text).decode() for key, text in data.items()}

    def _read_value(self, entry: Mapping[str, Any]) -> str:
        if "value" in entry:
            return entry["value"]
        (kind,) = entry["valueFrom"]
        reference = entry["valueFrom"][kind]
        if kind == "secretKeyRef":
            return self._read_texts("Secret", reference["name"])[reference["key"]]
        assert kind == "configMapKeyRef", f"{entry['name']}: unknown source {kind}"
        return self._read_texts("ConfigMap", reference["name"])[reference["key"]]

    def _write_volume(self, volume: dict[str, Any]) -> None:
        """Write the files of a volume, with the group of the pod."""
        (kind,) = volume.keys() - {"name"}
        folder = self.folder / "volumes" / volume["name"]
        folder.mkdir(parents=True)
        group = self.spec["securityContext"]["fsGroup"]
        os.chown(folder, 0, group)
        folder.chmod(0o2777 if kind == "emptyDir" else 0o2755)
        if kind == "emptyDir":
            return
        source = volume[kind]
        name, mode = source.get("secretName") or source["name"], source.get("defaultMode", 0o644)
        data = self.find({"secret": "Secret", "configMap": "ConfigMap"}[kind], name)["data"]
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        for item in items:
            file, text = folder / item["path"], data[item["key"]]
            file.write_bytes(base64.b64decode(text) if kind == "secret" else text.encode())
            os.chown(file, 0, group)
            file.chmod(mode)

    def _list_mounts(self, container: dict[str, Any], image: Image) -> list[str]:
        """Return the commands that make the container's root: this machine's files read-only, and the volumes."""
        root = self.folder / "root"
        lines = [
            "set -e",
            "mount --make-rprivate /",
            f"mkdir -p {root}",
            f"mount -t tmpfs tmpfs {root}",
            f"mkdir {root}/upper {root}/work {root}/files",
            f"mount -t overlay overlay -o lowerdir=/,upperdir={root}/upper,workdir={root}/work {root}/files",
            f"cd {root}/files",
            "mount --rbind /proc proc",
            "mount --rbind /dev dev",
            "mount --bind /etc/hosts etc/hosts",
        ]
        # The overlay has no folders of other file systems.
        for number, folder in enumerate(list_mounted_folders(image.folders)):
            upper, work = (root / "mounted" / str(number) / name for name in ("upper", "work"))
            options = f"lowerdir={folder},upperdir={upper},workdir={work}"
            lines += [f"mkdir -p .{folder} {upper} {work}", f"mount -t overlay overlay -o {options} .{folder}"]
        # In this view only, the container's user may enter the folders of the image's programs.
        lines += [f"chmod o+x .{folder}" for folder in image.opened]
        for path, file in image.files.items():
            lines += [f"mkdir -p .{Path(path).parent}", f"touch .{path}", f"mount --bind {file} .{path}"]
        # A checkout below /tmp, which is a volume of most pods, is mounted into that volume.
        views = {folder: root / "views" / str(number) for number, folder in enumerate(image.folders)}
        for folder, view in views.items():
            lines += [f"mkdir -p {view}", f"mount --bind .{folder} {view}"]
        for mount in container.get("volumeMounts", []):
            source, target = self.folder / "volumes" / mount["name"], f".{Path(mount['mountPath']).resolve()}"
            lines += [f"mkdir -p {target}", f"mount --bind {source} {target}"]
            for folder, view in views.items():
                if folder.is_relative_to(Path(mount["mountPath"]).resolve()):
                    lines += [f"mkdir -p .{folder}", f"mount --bind {view} .{folder}"]
                    lines.append(f"mount -o remount,bind,ro .{folder}")
            if mount.get("readOnly"):
                lines.append(f"mount -o remount,bind,ro {target}")
        if container["securityContext"].get("readOnlyRootFilesystem"):
            lines.append(f"mount -o remount,ro {root}/files")
        return lines

    def _format_start(self, command: list[str]) -> str:
        context = self.spec["securityContext"]
        assert command, "the image has no command"
        user = [f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}", f"--groups={context['fsGroup']}"]
        limits = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        return shlex.join(["exec", "chroot", ".", "setpriv", *user, *limits, *command])


def list_mounted_folders(folders: Iterable[Path]) -> list[Path]:
    """Return the folders that a view of the root's file system lacks, without folders below them on the same mount."""
    command = ["findmnt", "--noheadings", "--first-only", "--output", "TARGET", "--target"]
    mounts = {folder: subprocess.check_output([*command, str(folder)], text=True) for folder in sorted(folders)}
    return [
        folder
        for folder, mount in mounts.items()
        if mount != "/\n" and not any(mounts.get(parent) == mount for parent in folder.parents)
    ]


def is_sidecar(container: dict[str, Any]) -> bool:
    """Return whether an init container runs until the pod's other containers have ended."""
    return container.get("restartPolicy") == "Always"


@dataclass
class _Prober:
    """Probes a container: readiness and liveness begin after the startup probe has succeeded."""

    pod: Pod
    container: dict[str, Any]
    process: subprocess.Popen[bytes]

    def run(self) -> None:
        """Probe until the process ends. A failed startup or liveness probe ends it."""
        if self._has_started():
            self.pod.started_containers.add(self.container["name"])
            self._watch()
        self.process.wait()

    def _has_started(self) -> bool:
        probe = self.container.get("startupProbe")
        if probe is None:
            return True
        for _ in range(probe.get("failureThreshold", 3)):
            if self._is_over(1):
                return False
            if run_probe(probe, self.pod.address):
                return True
        self._kill()
        return False

    def _watch(self) -> None:
        readiness, liveness = self.container.get("readinessProbe"), self.container.get("livenessProbe")
        name, ready_containers = self.container["name"], self.pod.ready_containers
        if readiness is None:
            ready_containers[name] = time.monotonic()
        failures, dead, next_liveness = 0, 0, time.monotonic()
        while not self._is_over(0):
            if readiness:
                failures = 0 if run_probe(readiness, self.pod.address) else failures + 1
                if not failures:
                    ready_containers.setdefault(name, time.monotonic())
                if failures >= readiness.get("failureThreshold", 3):
                    ready_containers.pop(name, None)
            if liveness and time.monotonic() >= next_liveness:
                next_liveness = time.monotonic() + liveness["periodSeconds"]
                dead = 0 if run_probe(liveness, self.pod.address) else dead + 1
                if dead >= liveness["failureThreshold"]:
                    self._kill()
                    return
            # Until a pod is ready, it is probed each second: a kubelet's period would only make the tests slower.
            period = (readiness or liveness or {"periodSeconds": 5})["periodSeconds"]
            if self._is_over(period if name in ready_containers else 1):
                return

    def _is_over(self, seconds: float) -> bool:
        """Wait some seconds. Return whether the process ended or the pod terminates."""
        try:
            self.process.wait(max(0.05, seconds))
        except subprocess.TimeoutExpired:
            return self.pod.terminating_since is not None
        return True

    def _kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
