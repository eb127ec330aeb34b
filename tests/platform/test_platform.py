"""The life of a platform whose containers run as processes. The tests build on each other, in their order."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.platform import machines
from tests.platform.conftest import OLD_RELEASE, RELEASE
from tests.platform.deployed import GATEWAY, OPENFGA, SERVER, DeployedPlatform
from tests.platform.identity_provider import Issuer
from tests.platform.machines import trust
from tests.platform.pod import Pod
from tests.platform.postgres import DATABASE_HOST, DATABASE_READ_HOST, Postgres
from tests.platform.store import Store
from tests.platform.tenants import CATALOG, CatalogAccess
from tests.platform.traffic import Traffic
from tests.tenant_project import Tenant

MANAGEMENT = "http://lakekeeper.lakekeeper.svc:8181"
OUTAGE_SECONDS = 60

pytestmark = pytest.mark.timeout(900)


def read_server_info(issuer: Issuer) -> dict[str, Any]:
    response = httpx.get(f"{MANAGEMENT}/management/v1/info", headers={"authorization": f"Bearer {issuer.read_token()}"})
    return response.raise_for_status().json()


def read_versions(pods: list[Pod]) -> set[str]:
    return {pod.template["spec"]["containers"][0]["image"] for pod in pods}


def test_pods_wait_for_the_migration(platform: DeployedPlatform) -> None:
    """A stack's resources have an order. A tool that applies its manifests may start the server's pods before it."""
    manifests = platform.render()
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests]
    migration = next(index for index, (_, name) in enumerate(names) if name.startswith("lakekeeper-migrate-"))
    server = names.index(("Deployment", SERVER))
    assert names.index(("Deployment", OPENFGA)) < migration < server

    platform.cluster.apply(manifests[:migration])
    pods = platform.cluster.start(manifests[server])
    for pod in pods:
        pod.wait_for_output("wait-for-migration")
    assert all(pod.processes["wait-for-migration"].poll() is None for pod in pods)
    platform.cluster.apply(manifests[migration:])
    platform.cluster.wait_until_ready(SERVER)

    events = [event for event in platform.cluster.events if event.kind == "complete"]
    assert [event.name.rpartition("-")[0] for event in events] == ["lakekeeper-openfga-migrate", "lakekeeper-migrate"]
    assert all(pod.ready_since is not None and pod.ready_since > events[-1].at for pod in pods)
    assert [len(platform.cluster.list_pods(name)) for name in (SERVER, GATEWAY, OPENFGA)] == [2, 2, 2]
    assert not any(pod.restarts for name in (SERVER, GATEWAY, OPENFGA) for pod in platform.cluster.list_pods(name))


def is_server_pod(name: str) -> bool:
    return name.rpartition("-")[0] == SERVER


def test_reads_use_the_read_address_with_tls(platform: DeployedPlatform, postgres: Postgres) -> None:
    hosts = {socket.gethostbyname(host) for host in (DATABASE_HOST, DATABASE_READ_HOST)}
    connections = postgres.query(
        "SELECT DISTINCT usename, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL"
    )

    assert all(hosts <= list_peers(pod) for pod in platform.cluster.list_pods(SERVER))
    assert set(connections) == {"lakekeeper|t", "openfga|t"}


def list_peers(pod: Pod) -> set[str]:
    """Return the addresses that a pod has connections to."""
    command = ["ip", "netns", "exec", pod.name, "ss", "-tnH", "state", "established"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[3].rpartition(":")[0].removeprefix("[::ffff:").rstrip("]") for line in lines}


def test_pods_of_the_server_have_the_users_parts(platform: DeployedPlatform) -> None:
    """Variables of a Secret, a volume, an init container that writes into it, and a container beside the server."""
    for pod in platform.cluster.list_pods(SERVER):
        server = Path(f"/proc/{pod.processes[SERVER].pid}")
        variables = dict(line.split("=", 1) for line in (server / "environ").read_text().split("\0") if line)

        assert variables["TEAM"] == "data"
        assert variables["LAKEKEEPER__LISTEN_PORT"] == "8181"
        assert (server / "root/shared/text").read_text() == "prepared"
        assert pod.processes["helper"].poll() is None


def test_metrics_are_where_the_annotations_say(platform: DeployedPlatform) -> None:
    for pod in platform.cluster.list_pods(SERVER):
        annotations = pod.template["metadata"]["annotations"]
        url = f"http://{pod.address}:{annotations['prometheus.io/port']}{annotations['prometheus.io/path']}"
        assert httpx.get(url).raise_for_status().text.startswith("#")


def test_the_stack_bootstraps_the_server(platform: DeployedPlatform, issuer: Issuer) -> None:
    before = read_server_info(issuer)
    platform.bootstrap()

    assert (before["bootstrapped"], read_server_info(issuer)["bootstrapped"]) == (False, True)
    assert read_server_info(issuer)["authz-backend"] == "openfga"


def test_the_gateway_serves_the_catalog_only(issuer: Issuer, trusted: Path) -> None:
    gateway = CATALOG.removesuffix("/catalog")
    headers = {"authorization": f"Bearer {issuer.read_token()}"}
    with httpx.Client(base_url=gateway, verify=trust(trusted), headers=headers) as client:
        paths = ("/health", "/management/v1/info", "/catalog/v1/config")
        statuses = [client.get(path).status_code for path in paths]

    assert statuses == [200, 404, 400]


def test_a_tenant_is_used_through_the_gateway(tenant: Tenant, access: CatalogAccess, store: Store) -> None:
    assert tenant.catalog_config().uri == CATALOG
    prefix = access.find_prefix()
    schema = {"type": "struct", "fields": [{"id": 1, "name": "n", "type": "long", "required": False}]}
    body = {"name": "events", "schema": {"schema-id": 0, **schema}}
    access.send("POST", f"{prefix}/namespaces/results/tables", json=body).raise_for_status()

    loaded = access.load_table().raise_for_status().json()
    assert loaded["metadata"]["location"].startswith("s3://lakehouse/")
    assert loaded["config"]["s3.access-key-id"] != (store.keys / "id").read_text()
    assert access.send("GET", "config", params={"warehouse": "x"}).status_code == 404


def test_changes_of_tables_are_published(access: CatalogAccess) -> None:
    events: list[bytes] = []
    with socket.create_connection((machines.NATS_HOST, 4222), 10) as nats:
        nats.recv(65536)
        login = {"user": machines.NATS_USER, "pass": machines.NATS_PASSWORD, "verbose": False}
        nats.sendall(f"CONNECT {json.dumps(login)}\r\nSUB lakekeeper 1\r\nPING\r\n".encode())
        assert b"PONG" in nats.recv(65536)
        path = f"{access.find_prefix()}/namespaces/results/tables"
        schema = {"type": "struct", "schema-id": 0, "fields": []}
        access.send("POST", path, json={"name": "short", "schema": schema}).raise_for_status()
        events.append(nats.recv(65536))

    assert b"createTable" in b"".join(events)


def test_an_upgrade_migrates_before_it_serves(platform: DeployedPlatform, issuer: Issuer, traffic: Traffic) -> None:
    platform.cluster.events.clear()
    image = f"lakekeeper/catalog:v{RELEASE}" if RELEASE != OLD_RELEASE else f"lakekeeper/catalog:v{RELEASE}-1"

    platform.deploy(server__image=image, server__version=RELEASE)
    platform.cluster.wait_for_terminations()

    events = [(event.kind, event.name) for event in platform.cluster.events]
    (job,) = (name for kind, name in events if kind == "complete")
    starts = [index for index, (kind, name) in enumerate(events) if kind == "start" and is_server_pod(name)]
    assert job.startswith("lakekeeper-migrate-")
    assert events.index(("complete", job)) < min(starts)
    assert read_versions(platform.cluster.list_pods(SERVER)) == {image}
    assert read_server_info(issuer)["version"] == RELEASE
    assert_no_failures(traffic)


def assert_no_failures(traffic: Traffic) -> None:
    assert traffic.failures == []
    assert traffic.succeeded > 100


def test_a_rolling_restart_fails_no_request(platform: DeployedPlatform, traffic: Traffic) -> None:
    before = set(map(id, platform.cluster.list_pods(SERVER) + platform.cluster.list_pods(GATEWAY)))
    platform.cluster.restart(SERVER)
    platform.cluster.restart(GATEWAY)
    platform.cluster.wait_for_terminations()

    assert not before & set(map(id, platform.cluster.list_pods(SERVER) + platform.cluster.list_pods(GATEWAY)))
    assert_no_failures(traffic)


def test_the_loss_of_a_replica_is_survived(platform: DeployedPlatform, traffic: Traffic) -> None:
    """Requests on the lost replica fail until its Service leaves it out; then the other replica serves all of them."""
    platform.cluster.lose(platform.cluster.list_pods(SERVER)[0])

    traffic.successes_in_a_row = 0
    traffic.wait_for_successes(300, seconds=300)
    failures = len(traffic.failures)
    platform.cluster.wait_until_ready(SERVER)
    assert len(platform.cluster.list_pods(SERVER)) == 2
    assert len(traffic.failures) == failures


def test_a_rolling_restart_of_openfga_fails_no_request(platform: DeployedPlatform, traffic: Traffic) -> None:
    """Lakekeeper repeats no check: a replica must not end while Lakekeeper may connect to it."""
    before = set(map(id, platform.cluster.list_pods(OPENFGA)))
    platform.cluster.restart(OPENFGA)
    platform.cluster.wait_for_terminations()

    traffic.wait_for_successes(len(before) * 100, seconds=300)
    assert not before & set(map(id, platform.cluster.list_pods(OPENFGA)))
    assert_no_failures(traffic)


@pytest.mark.parametrize("count", [1, 2], ids=["one", "all"])
def test_the_loss_of_openfga_replicas_is_survived(platform: DeployedPlatform, traffic: Traffic, count: int) -> None:
    """Requests fail until Lakekeeper has connected to another replica. Its pods are not restarted."""
    servers = [(pod.name, pod.restarts) for pod in platform.cluster.list_pods(SERVER)]
    replicas = sorted(platform.cluster.list_pods(OPENFGA), key=count_clients, reverse=True)
    assert count_clients(replicas[0]) > 0, "Lakekeeper keeps its connections"
    for pod in replicas[:count]:
        platform.cluster.lose(pod)

    traffic.successes_in_a_row = 0
    traffic.wait_for_successes(300, seconds=300)
    failures = len(traffic.failures)
    for deployment in (OPENFGA, SERVER):
        platform.cluster.wait_until_ready(deployment, 60)
    assert len(traffic.failures) == failures
    assert [(pod.name, pod.restarts) for pod in platform.cluster.list_pods(SERVER)] == servers


def count_clients(pod: Pod) -> int:
    """Return the number of connections to OpenFGA's port in a pod."""
    command = ["ip", "netns", "exec", pod.name, "ss", "-tnH", "state", "established", "sport", "=", ":8081"]
    return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.parametrize("kind", ["stopped", "hanging"])
def test_a_database_outage_ends_without_a_restart(
    platform: DeployedPlatform, postgres: Postgres, access: CatalogAccess, kind: str
) -> None:
    """Pods become unready and remain: a restart of all replicas would only delay the recovery."""
    pods = platform.cluster.list_pods(SERVER)
    before = [(pod.name, pod.restarts) for pod in pods]
    (postgres.stop if kind == "stopped" else postgres.suspend)()
    try:
        time.sleep(OUTAGE_SECONDS)
        assert not any(pod.is_ready for pod in pods)
    finally:
        (postgres.start if kind == "stopped" else postgres.resume)()
    platform.cluster.wait_until_ready(SERVER, 60)

    assert access.load_table().status_code == 200
    assert [(pod.name, pod.restarts) for pod in platform.cluster.list_pods(SERVER)] == before


def test_a_rotated_client_secret_needs_no_change(
    platform: DeployedPlatform, issuer: Issuer, tenant: Tenant, access: CatalogAccess
) -> None:
    """The identity provider gets a new secret and a new signing key. Stacks and servers read both again.

    A server reads the keys when it sees a token of an unknown key; from then on it refuses tokens of the former key.
    """
    old_headers, prefix = access.headers, access.find_prefix()
    issuer.rotate("a-rotated-secret-of-the-client")

    assert platform.bootstrap()["changes"].keys() == {"same"}
    assert tenant.verb("up", "--yes", "--refresh")["changes"].keys() <= {"same", "refresh"}
    assert access.load_table().status_code == 200
    new_headers = access.headers
    for pod in platform.cluster.list_pods(SERVER):
        url = f"http://{pod.address}:8181/catalog/v1/{prefix}/namespaces"
        statuses = [httpx.get(url, headers=headers).status_code for headers in (new_headers, old_headers)]
        assert statuses == [200, 401]


def test_a_rotated_encryption_key_needs_the_credentials_again(
    platform: DeployedPlatform, tenant: Tenant, access: CatalogAccess, traffic: Traffic
) -> None:
    """Lakekeeper does not encrypt again. A warehouse's storage cannot be used until a stack sends the credential."""
    platform.stack.environ["ENCRYPTION_KEY"] = "0123456789abcdef" * 3 + "fedcba9876543210zyxwvutsrqponmlk"
    platform.deploy()
    platform.cluster.wait_for_terminations()
    tenant.up("--expect-no-changes")
    without_credential = access.load_table().status_code

    tenant.up("--resend-credentials")

    assert without_credential == 500
    assert access.load_table().status_code == 200
    assert traffic.failures == []


def test_secrets_may_be_in_a_key_value_store(
    platform: DeployedPlatform, vault: None, tenant: Tenant, access: CatalogAccess, store: Store
) -> None:
    secrets = {
        "backend": "kv2",
        "url": f"http://{machines.VAULT_HOST}:8200",
        "user": machines.VAULT_USER,
        "password": "env:VAULT_PASSWORD",
        "secret_mount": "secret",
    }
    platform.deploy(database__secrets=secrets)
    store.rotate()
    tenant.up()

    assert access.load_table().status_code == 200
    url = f"http://{machines.VAULT_HOST}:8200/v1/secret/metadata/secret?list=true"
    keys = httpx.get(url, headers={"X-Vault-Token": machines.VAULT_ROOT}).raise_for_status().json()["data"]["keys"]
    assert len(keys) == 1
