"""A real Kubernetes control plane: etcd, API server and the controllers that the tests need.

There is no kubelet and no network plugin: no container starts and no NetworkPolicy is enforced. `PodMarker` reports
what a kubelet would report.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from kubernetes import config as kubernetes_config  # pyright: ignore[reportMissingTypeStubs]
from kubernetes.client.exceptions import ApiException  # pyright: ignore[reportMissingTypeStubs]
from lakewright_sandbox.runtime.processes import free_port
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from urllib3.exceptions import HTTPError

from tests.child_processes import stop_process

CONTROLLERS = (
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "persistentvolumeclaim-protection-controller",
    "job-controller",
    "cronjob-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
)
SANDBOX_MARK = "lakewright-sandbox"
"""ConfigMap in `kube-public` by which the sandbox's provider knows that it may use the cluster."""

_SECONDS_TO_START = 120
_PLURALS = {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}


@dataclass(frozen=True)
class Programs:
    """Paths of the programs."""

    etcd: str
    apiserver: str
    controller_manager: str


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane."""

    folder: Path
    endpoint: str
    token: str

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.folder / "kubeconfig"

    @property
    def ca(self) -> Path:
        """Certificate of the API server, which is its own authority."""
        return self.folder / "certificates" / "apiserver.crt"

    def http(self, token: str | None = None) -> httpx.Client:
        """Return an HTTP client of the administrator, or of the bearer of a token."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        tls = ssl.create_default_context(cafile=self.ca)
        return httpx.Client(base_url=self.endpoint, verify=tls, headers=headers, timeout=30, trust_env=False)

    def get(self, path: str) -> dict[str, Any]:
        """Return the object or list at a path, which must exist."""
        with self.http() as http:
            return http.get(path).raise_for_status().json()

    def apply(self, manifest: dict[str, Any], **parameters: str) -> httpx.Response:
        """Apply a manifest by server-side apply, with further query parameters, and return the response."""
        with self.http() as http:
            return http.patch(
                build_path(manifest),
                params={"fieldManager": "tests", "force": "true", **parameters},
                headers={"Content-Type": "application/apply-patch+yaml"},
                content=json.dumps(manifest),
            )

    def request_token(self, namespace: str, account: str, audience: str | None = None) -> str:
        """Return a token of a ServiceAccount, as a kubelet projects it. Default: for the API server itself."""
        spec = {"expirationSeconds": 3600} | ({"audiences": [audience]} if audience else {})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        with self.http() as http:
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
            return http.post(path, json=body).raise_for_status().json()["status"]["token"]

    def api_client(self) -> Any:
        """Return the official client with the administrator's rights."""
        return kubernetes_config.new_client_from_config(str(self.kubeconfig))

    def write_kubeconfig(self) -> None:
        """Write the administrator's kubeconfig."""
        cluster = {"server": self.endpoint, "certificate-authority": str(self.ca)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "tests", "user": {"token": self.token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))
        self.kubeconfig.chmod(0o600)


def build_path(manifest: dict[str, Any]) -> str:
    """Return the path of a manifest's object."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    return f"/{'apis' if '/' in version else 'api'}/{version}{within}/{plural}/{metadata['name']}"


@contextlib.contextmanager
def control_plane(programs: Programs, folder: Path, address: str = "127.0.0.1") -> Iterator[ControlPlane]:
    """Start a control plane with RBAC whose API server listens at an address, and stop it at the end."""
    key = folder / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    etcd_port, peer_port, port = free_port(), free_port(), free_port()
    endpoint = f"https://{address}:{port}"
    plane = ControlPlane(folder, endpoint, token)
    plane.write_kubeconfig()
    with contextlib.ExitStack() as stack:
        etcd = f"http://127.0.0.1:{etcd_port}"
        peer = f"http://127.0.0.1:{peer_port}"
        start = _Starter(stack, folder)
        start(
            programs.etcd,
            {
                "data-dir": str(folder / "etcd"),
                "unsafe-no-fsync": "true",
                "listen-client-urls": etcd,
                "advertise-client-urls": etcd,
                "listen-peer-urls": peer,
                "initial-advertise-peer-urls": peer,
                "initial-cluster": f"default={peer}",
            },
        )
        start(
            programs.apiserver,
            {
                "etcd-servers": etcd,
                "bind-address": address,
                "secure-port": str(port),
                "cert-dir": str(folder / "certificates"),
                "token-auth-file": str(folder / "tokens.csv"),
                "authorization-mode": "RBAC",
                "service-account-issuer": endpoint,
                "service-account-key-file": str(key),
                "service-account-signing-key-file": str(key),
                "service-cluster-ip-range": "10.0.0.0/24",
                # Without it, the server refuses privileged pods before Pod Security does.
                "allow-privileged": "true",
            },
        )
        _wait_until_ready(plane, start)
        start(
            programs.controller_manager,
            {
                "kubeconfig": str(plane.kubeconfig),
                "secure-port": "0",
                "service-account-private-key-file": str(key),
                "controllers": ",".join(CONTROLLERS),
                "leader-elect": "false",
            },
        )
        _mark_as_sandbox(plane)
        with PodMarker(plane):
            yield plane


class _Starter:
    """Starts processes that log into files and stop with an exit stack."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __call__(self, program: str, options: dict[str, str]) -> None:
        name = Path(program).name
        log = self._stack.enter_context((self._folder / f"{name}.log").open("wb"))
        arguments = [f"--{option}={value}" for option, value in options.items()]
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log)
        self._stack.callback(stop_process, process, 20)
        self.processes[name] = process

    def check(self) -> None:
        """Raise RuntimeError with the end of the log if a process has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                end = (self._folder / f"{name}.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{name} ended with status {process.returncode}:\n{end}")


def _wait_until_ready(plane: ControlPlane, start: _Starter) -> None:
    @retry(
        retry=retry_if_exception_type((httpx.HTTPError, OSError)),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(_SECONDS_TO_START),
        reraise=True,
    )
    def wait() -> None:
        start.check()
        with plane.http() as http:
            http.get("/readyz").raise_for_status()
            http.get("/api/v1/namespaces/kube-public").raise_for_status()

    wait()


def _mark_as_sandbox(plane: ControlPlane) -> None:
    with plane.http() as http:
        mark = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SANDBOX_MARK}}
        http.post("/api/v1/namespaces/kube-public/configmaps", json=mark).raise_for_status()


class PodMarker(threading.Thread):
    """Reports the status of pods as a kubelet does: pods of Jobs have succeeded, others are running and ready."""

    def __init__(self, plane: ControlPlane) -> None:
        """Prepare the thread; `with` starts and stops it."""
        super().__init__(name="pod-marker", daemon=True)
        self._core: Any = kubernetes_client.CoreV1Api(plane.api_client())
        self._end = threading.Event()
        self._addresses = (f"10.1.{number // 250}.{number % 250 + 1}" for number in itertools.count())

    def __enter__(self) -> PodMarker:
        """Start the thread."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the thread."""
        self._end.set()
        self.join()

    def run(self) -> None:
        """Report new pods until the end."""
        while not self._end.wait(0.2):
            with contextlib.suppress(OSError, HTTPError):
                for pod in json.loads(self._core.list_pod_for_all_namespaces(_preload_content=False).data)["items"]:
                    # Another client may change or delete a pod first; the next round sees it.
                    with contextlib.suppress(ApiException):
                        self._report(pod)

    def _report(self, pod: dict[str, Any]) -> None:
        if pod["status"].get("phase", "Pending") == "Pending":
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            self._core.patch_namespaced_pod_status(name, namespace, {"status": self._build_status(pod)})

    def _build_status(self, pod: dict[str, Any]) -> dict[str, Any]:
        is_job = any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", []))
        now, address = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), next(self._addresses)
        conditions = [
            {"type": name, "status": "False" if is_job else "True", "lastTransitionTime": now}
            for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]
        phase = "Succeeded" if is_job else "Running"
        return {"phase": phase, "conditions": conditions, "podIP": address, "podIPs": [{"ip": address}]}
