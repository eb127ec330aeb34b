"""A platform of rendered manifests whose containers run as processes. `make test-platform` runs these tests."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certifi
import pytest

from tests import control_plane
from tests.authorities import Authority, make_authority, write_certificate
from tests.control_plane import ControlPlane
from tests.platform import machines
from tests.platform.cluster import ProcessCluster
from tests.platform.deployed import DeployedPlatform
from tests.platform.identity_provider import CLIENT, ISSUER, Issuer
from tests.platform.images import Image, ImageStore
from tests.platform.machines import Machine
from tests.platform.network import PodNetwork
from tests.platform.postgres import DATABASE_HOST, DATABASE_READ_HOST, PASSWORDS, Postgres
from tests.platform.service_accounts import ServiceAccounts
from tests.platform.store import Store
from tests.platform.tenants import CATALOG, CatalogAccess, TenantFactory
from tests.platform.traffic import Traffic, send_requests
from tests.platform_project import create_platform
from tests.tenant_project import Tenant

PROGRAMS = "TEST_PLATFORM_PROGRAMS"
"""Paths of OpenFGA, OpenBao, MinIO, kube-apiserver and kube-controller-manager, with colons between. `make
test-platform` installs them."""
LAKEKEEPER = os.environ.get("TEST_PLATFORM_LAKEKEEPER", "")
"""Path of a real Lakekeeper; empty for the stand-in."""
OLD_RELEASE, RELEASE = ("0.13.3", "0.13.3") if LAKEKEEPER else ("0.12.4", "0.13.3")
BINARY = "/home/nonroot/lakekeeper"
PROGRAM_ENVIRONMENT = {"RUST_MIN_STACK": "16777216"}
"""Variables of the image: builds of Lakekeeper without optimization need larger stacks."""
REPOSITORY = Path(__file__).parents[2]
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
EXTRA_SECRET = {"TEAM": "data", "LAKEKEEPER__LISTEN_PORT": "1"}
"""Variables of a Secret that another tool makes. The second is a variable of the stack, which wins."""
EXTRA_PARTS: dict[str, Any] = {
    "volumes": [{"name": "notes", "configMap": {"name": "notes"}}, {"name": "shared", "emptyDir": {}}],
    "volume_mounts": [{"name": "shared", "mountPath": "/shared"}],
    "init_containers": [
        {
            "name": "prepare",
            "image": "busybox:1",
            "command": ["cp", "/notes/text", "/shared/text"],
            "volumeMounts": [
                {"name": "notes", "mountPath": "/notes", "readOnly": True},
                {"name": "shared", "mountPath": "/shared"},
            ],
            "securityContext": RESTRICTED,
        }
    ],
    "containers": [
        {"name": "helper", "image": "busybox:1", "command": ["sleep", "infinity"], "securityContext": RESTRICTED}
    ],
    "env_from": [{"secretRef": {"name": "extra"}}],
}
"""Custom parts of the server's pods."""
EXTRA_OBJECTS: list[dict[str, Any]] = [
    {"kind": "ConfigMap", "metadata": {"name": "notes"}, "data": {"text": "prepared"}},
    {
        "kind": "Secret",
        "metadata": {"name": "extra"},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in EXTRA_SECRET.items()},
    },
]
"""Objects of the namespace that another tool makes."""


@dataclass(frozen=True)
class Programs:
    """Programs of servers."""

    openfga: Path
    openbao: Path
    minio: Path
    apiserver: Path
    controller_manager: Path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report which program played Lakekeeper."""
    played = f"Lakekeeper was {LAKEKEEPER}" if LAKEKEEPER else "The sandbox's stand-in played Lakekeeper"
    terminalreporter.write_line(f"{played} (releases {OLD_RELEASE} and {RELEASE}).")


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The servers' programs."""
    paths = [Path(path) for path in os.environ.get(PROGRAMS, "").split(":")]
    if len(paths) != 5 or not all(path.is_file() for path in paths):
        pytest.fail("these tests need the servers that `make test-platform` installs and names")
    return Programs(*paths)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """The folder of all servers, which their users may enter. pytest closes its own folders to other users."""
    with tempfile.TemporaryDirectory(prefix="platform", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@pytest.fixture(scope="session")
def network(folder: Path) -> PodNetwork:
    """The network of pods and machines."""
    return PodNetwork(folder / "hosts")


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The authority of all certificates."""
    return make_authority("the platform's own authority")


@pytest.fixture(scope="session")
def trusted(folder: Path, authority: Authority) -> Path:
    """File with this authority and Mozilla's authorities."""
    file = folder / "trusted.pem"
    file.write_text(Path(certifi.where()).read_text() + authority.pem)
    return file


@pytest.fixture(scope="session")
def postgres(folder: Path, network: PodNetwork, authority: Authority) -> Iterator[Postgres]:
    """The database of Lakekeeper and OpenFGA."""
    server = Postgres(folder / "postgres", network, authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def issuer(folder: Path, network: PodNetwork, authority: Authority, trusted: Path) -> Iterator[Issuer]:
    """The identity provider."""
    provider = Issuer(folder, network, authority, trusted)
    yield provider
    provider.stop()


@pytest.fixture(scope="session")
def nats(folder: Path, network: PodNetwork) -> Iterator[Machine]:
    """The broker of change events."""
    machine = machines.start_nats(folder, network)
    yield machine
    machine.stop()


@pytest.fixture(scope="session")
def vault(folder: Path, network: PodNetwork, programs: Programs) -> Iterator[None]:
    """The key-value store of secrets."""
    started = machines.start_vault(folder, network, programs.openbao)
    yield
    for machine in started:
        machine.stop()


@pytest.fixture(scope="session")
def store(
    folder: Path, network: PodNetwork, authority: Authority, trusted: Path, programs: Programs
) -> Iterator[Store]:
    """MinIO with a bucket."""
    server = Store(folder, network, authority, trusted, programs.minio)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def images(folder: Path, programs: Programs) -> ImageStore:
    """Images of the platform's containers."""
    lakekeeper = {}
    for release in {OLD_RELEASE, RELEASE}:
        file = Path(LAKEKEEPER) if LAKEKEEPER else write_stand_in_program(folder / f"lakekeeper-{release}", release)
        folders = () if LAKEKEEPER else (Path(sys.prefix), Path(sys.base_prefix), REPOSITORY)
        opened = list_closed_folders(*folders)
        image = Image({BINARY: file}, environment=PROGRAM_ENVIRONMENT, opened=opened, folders=folders)
        lakekeeper |= {f"lakekeeper/catalog:v{release}{build}": image for build in ("", "-1")}
    openfga = Image({"/openfga": programs.openfga}, entrypoint=("/openfga",))
    # As nginx's own images, which end gracefully.
    nginx = Image(stop_signal=signal.SIGQUIT)
    return ImageStore({**lakekeeper, "openfga/openfga": openfga, "nginx": nginx, "busybox": Image()})


def write_stand_in_program(file: Path, release: str) -> Path:
    """Write a program that plays a release of Lakekeeper with the sandbox's."""
    file.write_text(
        f"#!/bin/sh\nexport LAKEWRIGHT_STAND_IN_RELEASE={release} PYTHONDONTWRITEBYTECODE=1\n"
        f'exec {sys.executable} -m lakewright_sandbox.lakekeeper.program "$@"\n'
    )
    file.chmod(0o755)
    return file


def list_closed_folders(*folders: Path) -> tuple[Path, ...]:
    """Return the folders on the way that other users may not enter."""
    ways = {parent for folder in folders for parent in (folder, *folder.parents)}
    return tuple(sorted(way for way in ways if not way.stat().st_mode & 0o001))


@pytest.fixture(scope="session")
def plane(folder: Path, network: PodNetwork, programs: Programs) -> Iterator[ControlPlane]:
    """A real API server, which reviews tokens of ServiceAccounts."""
    etcd = shutil.which("etcd")
    if etcd is None:
        pytest.fail("etcd is not on the PATH: install it (on Debian and Ubuntu: apt install etcd-server)")
    started_programs = control_plane.Programs(etcd, str(programs.apiserver), str(programs.controller_manager))
    plane_folder = folder / "kubernetes"
    plane_folder.mkdir()
    address = network.add_host("kubernetes.default.svc")
    with control_plane.control_plane(started_programs, plane_folder, address) as plane:
        yield plane


@pytest.fixture(scope="session")
def cluster(
    folder: Path, network: PodNetwork, images: ImageStore, plane: ControlPlane, request: pytest.FixtureRequest
) -> Iterator[ProcessCluster]:
    """The cluster, without any object, beside the servers that its pods need."""
    for server in ("postgres", "issuer", "nats"):
        request.getfixturevalue(server)
    cluster = ProcessCluster(folder / "pods", network, images, ServiceAccounts(plane, "lakekeeper"))
    yield cluster
    cluster.shut_down()


@pytest.fixture(scope="session")
def platform(folder: Path, cluster: ProcessCluster, authority: Authority, trusted: Path) -> DeployedPlatform:
    """The platform of the old release: its stack exists, and nothing is deployed."""
    gateway = write_certificate(authority, folder / "gateway-tls", "lakekeeper-gateway.lakekeeper.svc")
    database = f"{DATABASE_HOST}:5432/openfga?sslmode=verify-full"
    stack = create_platform(
        folder,
        describe_platform(OLD_RELEASE, folder / "clients" / CLIENT),
        DATABASE_PASSWORD=PASSWORDS["lakekeeper"],
        OPENFGA_DATABASE_URI=f"postgres://openfga:{PASSWORDS['openfga']}@{database}",
        NATS_PASSWORD=machines.NATS_PASSWORD,
        VAULT_PASSWORD=machines.VAULT_PASSWORD,
        ENCRYPTION_KEY=os.urandom(36).hex(),
        GATEWAY_KEY=(gateway / "private.key").read_text(),
    )
    cluster.apply(EXTRA_OBJECTS)
    (stack.folder / "gateway.pem").write_text((gateway / "public.crt").read_text())
    (stack.folder / "authorities.pem").write_text(authority.pem)
    (stack.folder / "trusted.pem").write_text(trusted.read_text())
    return DeployedPlatform(stack, cluster)


def describe_platform(release: str, client_secret: Path) -> dict[str, Any]:
    """Return the spec: two replicas of each part, TLS towards database, issuer and clients, OpenFGA and NATS."""
    server = {"image": "openfga/openfga:v1.22.1", "database_uri": "env:OPENFGA_DATABASE_URI"}
    client = {"kind": "client-credentials", "client_id": CLIENT, "client_secret": f"file:{client_secret}"}
    return {
        "version": 1,
        "trial": True,  # images without digests
        "allow_plain_http": True,
        "server": {
            "version": release,
            "image": f"lakekeeper/catalog:v{release}",
            "ca_bundle": "trusted.pem",
            "extra_pod_parts": EXTRA_PARTS,
            "authentication": {
                "oidc": {"provider_uri": ISSUER, "audience": ["lakekeeper"]},
                "kubernetes": {},
            },
            "authorization": {"openfga": {"server": server | {"database_ca_bundle": "authorities.pem"}}},
            "events": {
                "nats": {
                    "address": f"nats://{machines.NATS_HOST}:4222",
                    "topic": "lakekeeper",
                    "user": machines.NATS_USER,
                    "password": "env:NATS_PASSWORD",
                }
            },
        },
        "database": {
            "postgres": {
                "host_write": DATABASE_HOST,
                "host_read": DATABASE_READ_HOST,
                "password": "env:DATABASE_PASSWORD",
                "ca_bundle": "authorities.pem",
            },
            "secrets": {"encryption_key": "env:ENCRYPTION_KEY"},
        },
        "gateway": {"image": "nginx:1.29", "tls": {"certificate": "gateway.pem", "key": "env:GATEWAY_KEY"}},
        "management": {"url": "http://lakekeeper.lakekeeper.svc:8181", "ca_bundle": "trusted.pem"},
        "bootstrap": {
            "accept_terms_of_use": True,
            "auth": client | {"token_url": f"{ISSUER}/token"},
        },
    }


@pytest.fixture(scope="session")
def tenants(platform: DeployedPlatform, folder: Path, trusted: Path, issuer: Issuer, store: Store) -> TenantFactory:
    """Tenants of the platform, which is deployed and bootstrapped if no test has done that."""
    platform.ensure_bootstrapped()
    return TenantFactory(platform, folder, trusted, issuer, store)


@pytest.fixture(scope="session")
def tenant(tenants: TenantFactory) -> Tenant:
    """A tenant with a warehouse in MinIO, which all tests share."""
    tenant = tenants.create()
    tenant.up()
    return tenant


@pytest.fixture(scope="session")
def access(tenant: Tenant, issuer: Issuer, trusted: Path) -> CatalogAccess:
    """Access to the tenant's catalog."""
    return CatalogAccess(tenant, issuer, trusted)


@pytest.fixture
def traffic(access: CatalogAccess, trusted: Path) -> Iterator[Traffic]:
    """Continuous requests during a test."""
    headers = access.headers
    with send_requests(f"{CATALOG}/v1/{access.find_prefix()}/", headers, trusted) as traffic:
        yield traffic
