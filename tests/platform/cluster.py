"""A cluster of processes: it applies rendered manifests as Kubernetes does, without Kubernetes.

Known kinds are Secret, ConfigMap, Service, Job and Deployment. Objects that a review of tokens needs are applied to a
real API server, from which pods get tokens of their ServiceAccounts. Jobs run to their end, and Deployments roll out,
before the next manifest is applied, as the Kubernetes provider of Pulumi waits for them. `start` applies a Deployment
without waiting, as `kubectl apply` does.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.platform.images import ImageStore
from tests.platform.network import PodNetwork
from tests.platform.pod import Pod
from tests.platform.service_accounts import APPLIED_KINDS, ServiceAccounts
from tests.platform.services import ServiceProxy

ROLLOUT_SECONDS = 300
JOB_SECONDS = 300
MAX_RESTARTS = 5
_PASSIVE = frozenset(
    """
ClusterRole ClusterRoleBinding HorizontalPodAutoscaler Ingress Namespace NetworkPolicy PodDisruptionBudget
ServiceAccount
""".split()  # noqa: SIM905 - a table
)
"""Kinds without an effect on processes."""

Manifest = dict[str, Any]


@dataclass
class ClusterEvent:
    """An event of the cluster, in the order of time."""

    kind: str
    name: str
    at: float = field(default_factory=time.monotonic)


class ProcessCluster:
    """Pods, Services and objects of one namespace."""

    def __init__(self, folder: Path, network: PodNetwork, images: ImageStore, accounts: ServiceAccounts) -> None:
        """Start without any object."""
        self._folder, self._network, self._images, self._accounts = folder, network, images, accounts
        self._objects: dict[tuple[str, str], Manifest] = {}
        self._pods: dict[str, list[Pod]] = {}
        self._template_hashes: dict[str, str] = {}
        self._numbers, self._proxy = itertools.count(1), ServiceProxy()
        self._ending: list[threading.Thread] = []
        self.events: list[ClusterEvent] = []

    def apply(self, manifests: Iterable[Manifest]) -> None:
        """Apply manifests in their order. An equal manifest changes nothing."""
        for manifest in manifests:
            key = (manifest["kind"], manifest["metadata"]["name"])
            before, self._objects[key] = self._objects.get(key), manifest
            if before == manifest:
                continue
            if manifest["kind"] in APPLIED_KINDS:
                self._accounts.apply(manifest)
            if manifest["kind"] in _PASSIVE | {"Secret", "ConfigMap"}:
                continue
            {"Service": self._serve, "Job": self._run_job, "Deployment": self._roll_out}[manifest["kind"]](manifest)

    def start(self, deployment: Manifest) -> list[Pod]:
        """Apply a Deployment and return its new pods at once. `apply` then completes the rollout."""
        name = deployment["metadata"]["name"]
        self._objects["Deployment", name] = deployment
        return [self._start_pod(name, deployment["spec"]["template"]) for _ in range(deployment["spec"]["replicas"])]

    def list_pods(self, deployment: str) -> list[Pod]:
        """Return the pods of a Deployment that do not terminate."""
        return [pod for pod in self._pods.get(deployment, []) if pod.terminating_since is None]

    def restart(self, deployment: str) -> None:
        """Replace all pods, as `kubectl rollout restart` does."""
        self._replace_pods(self._objects["Deployment", deployment])

    def lose(self, pod: Pod) -> None:
        """Kill a pod as the loss of its node does, and start another for it."""
        deployment = next(name for name, pods in self._pods.items() if pod in pods)
        pod.kill()
        self._start_pod(deployment, self._objects["Deployment", deployment]["spec"]["template"])

    def wait_until_ready(self, deployment: str, seconds: float = ROLLOUT_SECONDS) -> None:
        """Wait until all pods of a Deployment are ready."""
        deadline = time.monotonic() + seconds
        while not all(pod.is_ready for pod in self.list_pods(deployment)):
            assert time.monotonic() < deadline, self.describe(deployment)
            time.sleep(0.2)

    def describe(self, deployment: str) -> str:
        """Return the logs of a Deployment's pods."""
        return "\n".join(f"=== {pod.name}\n{pod.read_logs()[-4000:]}" for pod in self._pods.get(deployment, []))

    def shut_down(self) -> None:
        """Kill all pods."""
        for pods in self._pods.values():
            for pod in pods:
                if pod.terminating_since is None:
                    pod.kill()

    def wait_for_terminations(self) -> None:
        """Wait until all pods that terminate have ended."""
        for thread in self._ending:
            thread.join()

    def _find(self, kind: str, name: str) -> Manifest:
        manifest = self._objects.get((kind, name))
        assert manifest is not None, f"no {kind} {name}: a pod needs it before it was applied"
        return manifest

    def _start_pod(self, owner: str, template: Manifest) -> Pod:
        name = f"{owner}-{next(self._numbers)}"
        self._template_hashes[owner] = hash_template(template)
        if secret := self._accounts.request_secret(template):
            self._objects["Secret", f"{name}-token"] = secret
            template = self._accounts.mount_secret(template, f"{name}-token")
        pod = Pod(name, template, self._folder / name, self._network, self._images, self._find)
        self._pods.setdefault(owner, []).append(pod)
        self.events.append(ClusterEvent("start", name))
        pod.start()
        return pod

    def _serve(self, service: Manifest) -> None:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        address = self._network.add_host(f"{name}.{namespace}.svc")
        selector: dict[str, str] = service["spec"]["selector"]
        for port in service["spec"]["ports"]:
            self._proxy.serve(address, port["port"], port["targetPort"], lambda: self._select_pods(selector))

    def _select_pods(self, selector: dict[str, str]) -> list[Pod]:
        return [
            pod
            for pods in list(self._pods.values())
            for pod in list(pods)
            if selector.items() <= pod.template["metadata"]["labels"].items()
        ]

    def _run_job(self, job: Manifest) -> None:
        """Run a Job; a failed pod is followed by another, up to the limit."""
        name = job["metadata"]["name"]
        logs = ""
        for _ in range(job["spec"]["backoffLimit"] + 1):
            pod = self._start_pod(name, job["spec"]["template"])
            code = pod.wait_until_ended(JOB_SECONDS)
            self._pods[name].remove(pod)
            if code == 0:
                self.events.append(ClusterEvent("complete", name))
                return
            logs = pod.read_logs()
            time.sleep(1)
        raise AssertionError(f"the Job {name} failed:\n{logs}")

    def _roll_out(self, deployment: Manifest) -> None:
        name, template = deployment["metadata"]["name"], deployment["spec"]["template"]
        if self._template_hashes.get(name) == hash_template(template):
            return
        self._replace_pods(deployment)
        self.events.append(ClusterEvent("available", name))

    def _replace_pods(self, deployment: Manifest) -> None:
        """Start new pods one by one; each must be ready for a while before an old pod terminates."""
        name, spec = deployment["metadata"]["name"], deployment["spec"]
        old_pods = self.list_pods(name)
        for _ in range(spec["replicas"]):
            self._wait_until_available(self._start_pod(name, spec["template"]), spec.get("minReadySeconds", 0))
            if old_pods:
                self._terminate(old_pods.pop(0))

    def _wait_until_available(self, pod: Pod, seconds: float) -> None:
        deadline = time.monotonic() + ROLLOUT_SECONDS
        while pod.ready_since is None or time.monotonic() - pod.ready_since < seconds:
            is_late = time.monotonic() > deadline or pod.restarts > MAX_RESTARTS
            assert not is_late, f"{pod.name} is not ready:\n{pod.read_logs()[-3000:]}"
            time.sleep(0.1)
        self.events.append(ClusterEvent("ready", pod.name))

    def _terminate(self, pod: Pod) -> None:
        self.events.append(ClusterEvent("terminate", pod.name))
        thread = threading.Thread(target=pod.terminate)
        self._ending.append(thread)
        thread.start()


def hash_template(template: Manifest) -> str:
    """Return a hash of a pod's template: a Deployment replaces its pods when it changes."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
