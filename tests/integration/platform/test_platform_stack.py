"""The platform program on the embedded engine: rendered manifests, a cluster, and tenants that read its outputs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.cluster.app import SandboxCluster, kubeconfig
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox

from tests.certificates import write_server_certificate
from tests.platform_documents import replace_value, trial
from tests.platform_project import PlatformStack, create_platform
from tests.tenant_project import Tenant, create_project, new_name, tenant_spec

pytestmark = pytest.mark.stand_in("renders manifests with the sandbox's kubernetes provider")


def list_changed_names(result: dict[str, Any]) -> set[str]:
    return {step["name"] for step in result["steps"] if step["op"] not in {"same", "read"}}


def test_secrets_are_in_secret_objects_and_encrypted_state_only(session_platform: PlatformStack) -> None:
    manifests = session_platform.manifests()
    secrets = [document for (kind, _), document in manifests.items() if kind == "Secret"]
    values = {base64.b64decode(value).decode() for secret in secrets for value in secret["data"].values()}
    assert len(values) == 2  # the encryption key, and one password of server and database
    other_documents = [json.dumps(document) for (kind, _), document in manifests.items() if kind != "Secret"]
    state = "".join(file.read_text() for file in session_platform.state.rglob("*") if file.is_file())
    for value in values:
        assert not any(value in text for text in other_documents)
        assert value not in state
        assert base64.b64encode(value.encode()).decode() not in state


def test_a_second_update_changes_nothing(session_platform: PlatformStack) -> None:
    assert session_platform.up("--expect-no-changes")["changes"].keys() == {"same"}


def test_a_new_image_migrates_before_it_serves(platform: PlatformStack) -> None:
    """A setting that no migration reads changes the server alone."""
    platform.up()
    jobs = {name for kind, name in platform.manifests() if kind == "Job"}
    platform.spec = replace_value(platform.spec, "server.logs", {"level": "debug"})
    platform.write()
    changes = list_changed_names(platform.up())
    platform.spec = replace_value(platform.spec, "server.image", "quay.io/lakekeeper/catalog:v0.13.3-1")
    platform.write()

    result = platform.up()

    assert changes == {"lakekeeper-server"}
    steps = [(step["op"], step["name"]) for step in result["steps"] if step["op"] not in {"same", "read"}]
    migrated = next(index for index, step in enumerate(steps) if step[1] == "lakekeeper-migration")
    served = next(index for index, step in enumerate(steps) if step[1] == "lakekeeper-server")
    assert "create" in steps[migrated][0]
    assert migrated < served
    (job,) = {name for kind, name in platform.manifests() if kind == "Job"}
    assert job not in jobs


def test_changed_files_of_the_server_restart_it(platform: PlatformStack) -> None:
    write_server_certificate(platform.folder / "authorities.pem")
    nats = {"address": "tls://nats.example", "topic": "t", "credentials_file": "env:NATS_CREDENTIALS"}
    platform.spec = replace_value(
        replace_value(platform.spec, "server.ca_bundle", "authorities.pem"), "server.events.nats", nats
    )
    platform.write()
    platform.up(NATS_CREDENTIALS="first")

    write_server_certificate(platform.folder / "authorities.pem")
    authorities = platform.up(NATS_CREDENTIALS="first")
    credentials = platform.up(NATS_CREDENTIALS="second")

    assert list_changed_names(authorities) == {"lakekeeper-ca", "lakekeeper-server"}
    assert list_changed_names(credentials) == {"lakekeeper-secret-lakekeeper-files", "lakekeeper-server"}


def test_autoscaling_begins_with_the_running_replicas(tmp_path: Path) -> None:
    """An update changes no number of replicas: an update without one would scale the server to one pod."""
    file = tmp_path / "kubeconfig"
    with serve(SandboxCluster().app()) as endpoint, httpx.Client(base_url=endpoint, timeout=60) as cluster:
        file.write_text(kubeconfig(endpoint))
        platform = create_platform(tmp_path, trial(), render=False, KUBECONFIG=str(file))
        platform.up()
        spec = replace_value(platform.spec, "server.autoscaling", {"min": 2, "max": 4})
        platform.spec = replace_value(spec, "server.logs", {"level": "debug"})
        platform.write()

        changes = list_changed_names(platform.up())

        assert changes == {"lakekeeper-server", "lakekeeper-autoscaler"}
        server = "/apis/apps/v1/namespaces/lakekeeper/deployments/lakekeeper"
        assert cluster.get(server).json()["spec"]["replicas"] == 2
        autoscaler = {"fieldManager": "horizontal-pod-autoscaler"}
        merge = {"content-type": "application/merge-patch+json"}
        body = json.dumps({"spec": {"replicas": 3}})
        cluster.patch(f"{server}/scale", params=autoscaler, headers=merge, content=body).raise_for_status()
        platform.spec = replace_value(spec, "server.logs", {"level": "info"})
        platform.write()

        changes = list_changed_names(platform.up())

        assert changes == {"lakekeeper-server"}
        assert cluster.get(server).json()["spec"]["replicas"] == 3


def test_bootstrap_comes_after_server_and_gateway(platform: PlatformStack, sandbox: Sandbox) -> None:
    """The server at `management.url` is the sandbox's."""
    endpoint = sandbox.lakekeeper.endpoint
    platform.spec |= {"management": {"url": endpoint}, "bootstrap": {"accept_terms_of_use": True}}
    platform.write()

    kinds = [step["type"].rpartition(":")[2] for step in platform.up()["steps"] if step["op"] == "create"]

    assert kinds.count("Bootstrap") == 1
    assert set(kinds[kinds.index("Bootstrap") :]).isdisjoint({"Job", "Deployment", "Service"})
    assert httpx.get(f"{endpoint}/management/v1/info").json()["bootstrapped"] is True


def test_mistakes_are_reported_before_any_creation(platform: PlatformStack) -> None:
    platform.spec = replace_value(platform.spec, "server.extra_env", {"ICEBERG_REST__BASE_URI": "x"})
    platform.write()

    error = platform.error("up", "--yes", "--engine", "embedded")

    assert "its successor is `LAKEKEEPER__BASE_URI`" in error
    assert not platform.rendered.exists()


def test_a_missing_or_weak_secret_is_reported_by_its_setting(platform: PlatformStack) -> None:
    platform.spec = replace_value(platform.spec, "database.secrets", {"encryption_key": "env:PLATFORM_KEY"})
    platform.write()

    missing = platform.error("up", "--yes", "--engine", "embedded")
    weak = platform.run("up", "--yes", "--engine", "embedded", PLATFORM_KEY="correct-horse-battery")

    assert "set the environment variable PLATFORM_KEY" in missing
    assert "database.secrets.encryption_key: has room for" in weak.stdout + weak.stderr
    assert "correct-horse" not in weak.stdout + weak.stderr
    assert not platform.rendered.exists()


def test_a_tenant_takes_its_addresses_from_the_platform(
    platform: PlatformStack, sandbox: Sandbox, tmp_path: Path
) -> None:
    """The platform has the sandbox's addresses, so the tenant uses the addresses that it reads."""
    platform.spec |= {
        "management": {"url": sandbox.lakekeeper.endpoint},
        "gateway": {**platform.spec["gateway"], "url": sandbox.lakekeeper.endpoint},
    }
    platform.write()
    name = new_name()
    folder = tmp_path / name
    stack = f"organization/lakewright-platform/{platform.name}"
    create_project(folder, {"sandbox": str(sandbox.dir), "platform": {"stack": stack}})
    environ = {"PULUMI_BACKEND_URL": platform.state.as_uri()}
    tenant = Tenant(
        folder, sandbox, tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"}), environ=environ
    )
    tenant.write()
    tenant.output("stack", "init")

    before = tenant.error("preview", "--engine", "embedded")
    platform.up()
    tenant.up()

    assert "lakewright-platform/test" in before
    assert tenant.catalog_config().uri == f"{sandbox.lakekeeper.endpoint}/catalog"
    tenant.verb("destroy", "--yes")
