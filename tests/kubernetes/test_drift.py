"""Drift of objects on a real API server, from lists for all stacks: the same that `preview --refresh` finds."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from kubernetes.client.exceptions import ApiException  # pyright: ignore[reportMissingTypeStubs]
from lakewright.drift.detection.run import find_drift
from lakewright.drift.model import Difference, DifferenceKind, DriftReport
from lakewright.fleet.selection import SelectedStack
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.object_reader import ObjectReader
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.steps.object_read import ObjectRead
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.control_plane import ControlPlane
from tests.tenant_project import PASSPHRASE, MakeTenant, Tenant

UNITS: list[dict[str, Any]] = [
    {"name": "notebook", "runtime": "spark", "size": {"cpu": "1", "memory": "2Gi"}, "warehouse": "executions"},
    {"name": "workflows", "runtime": "texera", "size": {"cpu": "1", "memory": "2Gi", "shm": "512Mi"}}
    | {"warehouses": "all"},
]
MANAGER = "kubectl-edit"


@pytest.fixture(scope="module")
def tenant(make_tenant: MakeTenant) -> Tenant:
    """A tenant that is deployed on the cluster."""
    tenant = make_tenant(computing_units=UNITS, maintenance={"schedule": "0 3 * * *"})
    tenant.up()
    return tenant


@pytest.fixture
def drift(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that finds the drift of the tenant."""
    monkeypatch.chdir(tenant.folder)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    for name, value in tenant.environ.items():
        monkeypatch.setenv(name, value)

    def run() -> DriftReport:
        return find_drift(PulumiProject.load(tenant.folder), [SelectedStack(tenant.name, tenant.spec)], parallel=8)

    return run


def select_kubernetes_differences(report: DriftReport) -> list[Difference]:
    assert [problem for stack in report.stacks for problem in stack.problems] == []
    return [difference for difference in report.differences() if difference.type.startswith("kubernetes:")]


def preview_refresh(tenant: Tenant) -> dict[str, tuple[str, frozenset[str]]]:
    """Return result and property keys of the objects that `preview --refresh` finds different, by URN."""
    return {
        step["urn"]: (step["result"], frozenset(step["keys"] if step["result"] == "update" else ()))
        for step in tenant.verb("preview", "--refresh")["steps"]
        if step["op"] == "refresh" and step["result"] != "same" and step["type"].startswith("kubernetes:")
    }


def group_by_urn(differences: list[Difference]) -> dict[str, tuple[str, frozenset[str]]]:
    """Return differences in the same form."""
    results_by_urn: dict[str, tuple[str, frozenset[str]]] = {}
    for difference in differences:
        keys = results_by_urn.get(difference.urn, ("", frozenset[str]()))[1]
        is_gone = difference.kind is DifferenceKind.GONE
        key = difference.property.replace("[", ".").partition(".")[0]
        results_by_urn[difference.urn] = ("delete", frozenset()) if is_gone else ("update", keys | {key})
    return results_by_urn


def test_deployed_tenant_is_the_same_by_lists(
    tenant: Tenant, cluster: ControlPlane, drift: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists alone show that nothing differs: no provider is started."""
    apps: Any = kubernetes_client.AppsV1Api(cluster.api_client())
    read: list[str] = []

    def read_again(_reader: ObjectReader, resource: ResourceState, _provider: ResourceState) -> ObjectRead:
        read.append(resource.urn)
        return ObjectRead(resource, "same")

    monkeypatch.setattr(ObjectReader, "read", read_again)

    @retry(retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(60))
    def unavailable() -> set[str]:
        deployments = apps.list_namespaced_deployment(f"tenant-{tenant.name}").items
        return {item.metadata.name for item in deployments if not item.status.available_replicas}

    unavailable()

    differences = select_kubernetes_differences(drift())

    assert (differences, read) == ([], [])
    assert preview_refresh(tenant) == {}


def test_finds_what_a_refresh_finds(tenant: Tenant, cluster: ControlPlane, drift: Any) -> None:
    namespace, api = f"tenant-{tenant.name}", cluster.api_client()
    core: Any = kubernetes_client.CoreV1Api(api)
    networking: Any = kubernetes_client.NetworkingV1Api(api)
    apps: Any = kubernetes_client.AppsV1Api(api)
    core.patch_namespaced_config_map(
        "notebook-catalog", namespace, {"data": {"catalog.json": "{}"}}, field_manager=MANAGER
    )
    networking.patch_namespaced_network_policy("notebook", namespace, {"spec": {"egress": [{}]}})
    apps.patch_namespaced_deployment_scale("workflows", namespace, {"spec": {"replicas": 3}}, field_manager=MANAGER)
    core.patch_namespace(namespace, {"metadata": {"labels": {"added-by-another-user": "yes"}}})
    service_accounts = core.list_namespaced_service_account(namespace, label_selector="app.kubernetes.io/managed-by")
    deleted_account = service_accounts.items[0].metadata.name
    core.delete_namespaced_service_account(deleted_account, namespace)
    expected = preview_refresh(tenant)

    report = drift()

    differences = select_kubernetes_differences(report)
    assert group_by_urn(differences) == expected
    assert {urn.rpartition("::")[0].rpartition(":")[2] for urn in expected} == {
        "ConfigMap",
        "NetworkPolicy",
        "Deployment",
        "ServiceAccount",
    }
    # Kubernetes records no time for changes by the subresource `scale`, so nothing proves when that was.
    actors = {(item.type.rpartition(":")[2], item.actor.name) for item in differences if item.actor}
    assert ("ConfigMap", MANAGER) in actors
    assert "Deployment" not in {kind for kind, _ in actors}
    assert all(difference.actor is None for difference in differences if difference.kind is DifferenceKind.GONE)
    tenant.up("--refresh")
    assert select_kubernetes_differences(drift()) == []


def test_cluster_that_is_down_is_reported_alone(
    tenant: Tenant, cluster: ControlPlane, drift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other objects of the stack are still compared."""
    down = tmp_path / "kubeconfig"
    down.write_text(cluster.kubeconfig.read_text().replace(cluster.endpoint, "https://127.0.0.1:9"))
    state = next((tenant.folder / "state" / ".pulumi" / "stacks").rglob(f"{tenant.name}.json"))
    text = state.read_text()
    state.write_text(text.replace(str(cluster.kubeconfig), str(down)))
    monkeypatch.setenv("KUBECONFIG", str(down))

    report = drift()

    state.write_text(text)
    assert report.exit_code == 1
    assert {difference.kind for difference in report.differences()} == {DifferenceKind.UNREACHABLE}
    assert {difference.type.partition(":")[0] for difference in report.differences()} == {"kubernetes"}
    assert len(report.stacks[0].problems) == 1


def test_lists_of_one_namespace_are_enough(
    tenant: Tenant, cluster: ControlPlane, drift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who may read the tenant's namespace only gets the same answer about its objects."""
    namespace, api = f"tenant-{tenant.name}", cluster.api_client()
    core: Any = kubernetes_client.CoreV1Api(api)
    rbac: Any = kubernetes_client.RbacAuthorizationV1Api(api)
    account = {"metadata": {"name": "drift-reader", "namespace": "default"}}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    subject = {"kind": "ServiceAccount", "name": "drift-reader", "namespace": "default"}
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "drift-reader"}
    with contextlib.suppress(ApiException):  # it exists after the run with the other provider
        core.create_namespaced_service_account("default", account)
    binding = {"metadata": {"name": "drift-reader"}, "subjects": [subject], "roleRef": role_ref}
    # The sandbox's provider looks for the mark of a sandbox in `kube-public`.
    for readable_namespace in (namespace, "kube-public"):
        with contextlib.suppress(ApiException):
            rbac.create_namespaced_role(readable_namespace, {"metadata": {"name": "drift-reader"}, "rules": rules})
            rbac.create_namespaced_role_binding(readable_namespace, binding)
    token = core.create_namespaced_service_account_token(
        "drift-reader", "default", {"spec": {"expirationSeconds": 3600}}
    ).status.token
    limited = tmp_path / "kubeconfig"
    limited.write_text(cluster.kubeconfig.read_text().replace(cluster.token, token))
    state = next((tenant.folder / "state" / ".pulumi" / "stacks").rglob(f"{tenant.name}.json"))
    text = state.read_text()
    state.write_text(text.replace(str(cluster.kubeconfig), str(limited)))
    monkeypatch.setenv("KUBECONFIG", str(limited))
    core.patch_namespaced_config_map("notebook-catalog", namespace, {"data": {"catalog.json": "{}"}})

    report = drift()

    state.write_text(text)
    changed = [difference for difference in report.differences() if difference.kind is DifferenceKind.CHANGED]
    assert {(difference.type.rpartition(":")[2], difference.property.partition("[")[0]) for difference in changed} == {
        ("ConfigMap", "data")
    }
    assert {
        difference.type for difference in report.differences() if difference.kind is DifferenceKind.UNREACHABLE
    } <= {"kubernetes:core/v1:Namespace"}
