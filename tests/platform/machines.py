"""Servers outside the cluster, each with an address of its own: how they start, NATS and OpenBao."""

from __future__ import annotations

import os
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.platform.network import PodNetwork

NATS_HOST = "nats.messaging.svc"
VAULT_HOST = "bao.vault.svc"
NATS_USER, NATS_PASSWORD = "lakekeeper", "password-of-nats"
VAULT_USER, VAULT_PASSWORD, VAULT_ROOT = "lakekeeper", "password-of-openbao", "token-of-root"


@dataclass
class Machine:
    """A server as a process, and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait_until(self, responds: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until the server responds."""
        deadline = time.monotonic() + seconds
        while not responds():
            is_late = self.process.poll() is not None or time.monotonic() > deadline
            assert not is_late, f"{self.name}:\n{self.log.read_text()[-3000:]}"
            time.sleep(0.1)

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(30)


def start_machine(name: str, command: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> Machine:
    """Start a server whose log is in a folder."""
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(environ or {})})
    return Machine(name, process, log)


def trust(authorities: Path) -> ssl.SSLContext:
    """Return the TLS of a client that trusts the authorities of a file."""
    return ssl.create_default_context(cafile=str(authorities))


def is_responding(url: str, authority: Path | None = None) -> bool:
    """Return whether a server responds with success."""
    try:
        return httpx.get(url, verify=trust(authority) if authority else True, trust_env=False, timeout=2).is_success
    except httpx.HTTPError:
        return False


def start_nats(folder: Path, network: PodNetwork) -> Machine:
    """Start NATS, which accepts one user."""
    address = network.add_host(NATS_HOST)
    config = folder / "nats.conf"
    config.write_text(
        f'listen: "{address}:4222"\nhttp: "{address}:8222"\n'
        f'authorization: {{user: {NATS_USER}, password: "{NATS_PASSWORD}"}}\n'
    )
    machine = start_machine("nats", ["/usr/sbin/nats-server", "-c", str(config)], folder)
    machine.wait_until(lambda: is_responding(f"http://{NATS_HOST}:8222/healthz"))
    return machine


VAULT_PROXY = """\
daemon off;
pid {folder}/vault-proxy.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/vault-proxy;
    server {{
        listen {address}:8200;
        location / {{ proxy_pass http://127.0.0.1:8201; }}
        location = /v1/sys/health {{
            proxy_pass http://127.0.0.1:8201;
            sub_filter_types application/json;
            sub_filter '"standby"' '"performance_standby":false,"standby"';
        }}
    }}
}}
"""
"""A proxy that adds the field `performance_standby`, which Lakekeeper up to 0.13.3 requires, and OpenBao from 2.6 on
does not have."""


def start_vault(folder: Path, network: PodNetwork, program: Path) -> list[Machine]:
    """Start OpenBao with a key-value store at `secret` and the user of Lakekeeper, and the proxy before it."""
    address = network.add_host(VAULT_HOST)
    command = [str(program), "server", "-dev", "-dev-listen-address=127.0.0.1:8201", "-dev-no-store-token"]
    server = start_machine("openbao", command, folder, {"BAO_DEV_ROOT_TOKEN_ID": VAULT_ROOT, "HOME": str(folder)})
    config = folder / "vault-proxy.conf"
    config.write_text(VAULT_PROXY.format(folder=folder, address=address))
    proxy = start_machine("vault-proxy", ["/usr/sbin/nginx", "-e", "/dev/stderr", "-c", str(config)], folder)
    proxy.wait_until(lambda: is_responding(f"http://{VAULT_HOST}:8200/v1/sys/health"))
    policy = 'path "secret/*" { capabilities = ["create", "read", "update", "delete", "list"] }'
    with httpx.Client(base_url=f"http://{VAULT_HOST}:8200/v1", headers={"X-Vault-Token": VAULT_ROOT}) as http:
        http.post("sys/auth/userpass", json={"type": "userpass"}).raise_for_status()
        http.post("sys/policies/acl/lakekeeper", json={"policy": policy}).raise_for_status()
        user = {"password": VAULT_PASSWORD, "token_policies": ["lakekeeper"]}
        http.post(f"auth/userpass/users/{VAULT_USER}", json=user).raise_for_status()
    return [proxy, server]
