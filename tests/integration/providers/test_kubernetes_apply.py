"""The kubernetes provider on the sandbox's cluster: owners of fields, conflicts, and drift that force fixes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from kubernetes import config as kubernetes_config  # pyright: ignore[reportMissingTypeStubs]
from lakewright_sandbox.cluster.app import SandboxCluster, kubeconfig
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.providers.protocol.properties import Properties, to_struct
from pulumi.runtime.proto import provider_pb2

from tests.integration.providers.conftest import Provider

NAMESPACE = "kubernetes:core/v1:Namespace"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
TENANT = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant-a", "labels": {"a": "1"}}}


def deployment(replicas: int = 1, image: str = "spark:1", **labels: str) -> Properties:
    pod = {"containers": [{"name": "spark", "image": image, "env": [{"name": "HOME", "value": "/scratch"}]}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cu", "namespace": "tenant-a", "labels": {"app": "cu", **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "cu"}},
            "template": {"metadata": {"labels": {"app": "cu"}}, "spec": pod},
        },
    }


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    with serve(SandboxCluster().app()) as endpoint:
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(endpoint))
        yield file


@pytest.fixture
def apps(config: Path) -> Any:
    """The cluster's API as another person's tools use it."""
    return kubernetes_client.AppsV1Api(kubernetes_config.new_client_from_config(str(config)))


@pytest.fixture
def connect_to_cluster(
    kubernetes_port: int, connect: Callable[[int], Provider], config: Path
) -> Callable[..., Provider]:
    def configure(**settings: str) -> Provider:
        provider = connect(kubernetes_port).configure({"kubeconfig": str(config), **settings})
        if not provider.read(NAMESPACE, "tenant-a", inputs=TENANT)[0]:
            provider.create(NAMESPACE, TENANT)
        return provider

    return configure


def scale(apps: Any, replicas: int) -> None:
    apps.patch_namespaced_deployment_scale("cu", "tenant-a", {"spec": {"replicas": replicas}}, field_manager="kubectl")


def owners(apps: Any) -> list[tuple[str, str, str | None]]:
    """Return the managers of the deployment, each with its operation and subresource."""
    entries = apps.read_namespaced_deployment("cu", "tenant-a").metadata.managed_fields
    return [(re.sub("[0-9a-f]{8}$", "#", entry.manager), entry.operation, entry.subresource) for entry in entries]


def create_and_update(provider: Provider) -> tuple[str, Properties]:
    """Create a deployment and update it once, so that its manager owns the fields of the first create."""
    resource_id, outputs = provider.create(DEPLOYMENT, deployment(replicas=2))
    return resource_id, provider.update(DEPLOYMENT, resource_id, outputs, deployment())


def test_a_create_takes_over_no_existing_object(connect_to_cluster: Callable[..., Provider]) -> None:
    provider = connect_to_cluster(enablePatchForce="true")
    provider.create(DEPLOYMENT, deployment())

    with pytest.raises(grpc.RpcError) as refused:
        provider.create(DEPLOYMENT, deployment(image="spark:2"))

    assert 'deployments.apps "cu" already exists' in str(refused.value.details())


def test_the_first_update_takes_over_the_creates_fields(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    provider = connect_to_cluster()
    resource_id, outputs = provider.create(DEPLOYMENT, deployment())
    assert owners(apps) == [("pulumi-kubernetes", "Update", None)]

    provider.update(DEPLOYMENT, resource_id, outputs, deployment(image="spark:2"))

    assert owners(apps) == [("pulumi-kubernetes-#", "Apply", None)]


def test_upsert_applies_to_an_existing_object(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    connect_to_cluster().create(DEPLOYMENT, deployment())
    provider = connect_to_cluster(upsertExistingObjects="true", enablePatchForce="true")

    preview = provider.create(DEPLOYMENT, deployment(replicas=3), preview=True)[1]
    assert apps.read_namespaced_deployment("cu", "tenant-a").spec.replicas == 1
    resource_id, outputs = provider.create(DEPLOYMENT, deployment(replicas=3))

    assert preview["spec"]["replicas"] == outputs["spec"]["replicas"] == 3
    entries = apps.read_namespaced_deployment("cu", "tenant-a").metadata.managed_fields
    assert (outputs["__fieldManager"], "Apply") in {(entry.manager, entry.operation) for entry in entries}
    provider.update(DEPLOYMENT, resource_id, outputs, deployment(replicas=3, image="spark:2"))
    assert owners(apps) == [("pulumi-kubernetes-#", "Apply", None)]


def test_upsert_without_force_conflicts(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    connect_to_cluster().create(DEPLOYMENT, deployment())
    provider = connect_to_cluster(upsertExistingObjects="true")

    with pytest.raises(grpc.RpcError) as refused:
        provider.create(DEPLOYMENT, deployment(replicas=3))

    assert (
        'had an apply conflict: Apply failed with 1 conflict: conflict with "pulumi-kubernetes" using apps/v1: '
        ".spec.replicas"
    ) in str(refused.value.details())
    assert apps.read_namespaced_deployment("cu", "tenant-a").spec.replicas == 1


def test_upsert_creates_a_missing_object(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    connect_to_cluster(upsertExistingObjects="true").create(DEPLOYMENT, deployment())

    assert owners(apps) == [("pulumi-kubernetes-#", "Apply", None)]


def test_an_upsert_preview_shows_immutable_changes(connect_to_cluster: Callable[..., Provider]) -> None:
    """The update deletes such an object before it creates the new object."""
    connect_to_cluster().create(DEPLOYMENT, deployment())
    changed_inputs = deployment()
    changed_inputs["spec"]["selector"] = {"matchLabels": {"app": "else"}}

    preview = connect_to_cluster(upsertExistingObjects="true").create(DEPLOYMENT, changed_inputs, preview=True)

    assert preview == ("", changed_inputs)


def test_upsert_is_a_supported_setting(kubernetes_port: int, connect: Callable[[int], Provider], config: Path) -> None:
    news = to_struct({"kubeconfig": str(config), "upsertExistingObjects": "true"})

    response = connect(kubernetes_port).stub.CheckConfig(provider_pb2.CheckRequest(urn="u", news=news))

    assert not response.failures


@pytest.mark.parametrize("force", ["true", "false"], ids=["force", "no_force"])
def test_ignored_replicas_of_an_autoscaler_remain(
    connect_to_cluster: Callable[..., Provider], apps: Any, force: str
) -> None:
    provider = connect_to_cluster(enablePatchForce=force)
    resource_id, outputs = create_and_update(provider)
    scale(apps, 3)

    for preview in (True, False):
        change = deployment(image="spark:2")
        updated = provider.update(
            DEPLOYMENT, resource_id, outputs, change, ignoreChanges=["spec.replicas"], preview=preview
        )
        assert updated["spec"]["replicas"] == 3

    live = apps.read_namespaced_deployment("cu", "tenant-a")
    assert (live.spec.replicas, live.spec.template.spec.containers[0].image) == (3, "spark:2")
    assert owners(apps) == [("kubectl", "Update", "scale"), ("pulumi-kubernetes-#", "Apply", None)]


def test_an_ignored_field_of_the_manager_remains(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    """An apply without the field would delete it."""
    provider = connect_to_cluster()
    resource_id, outputs = create_and_update(provider)

    provider.update(DEPLOYMENT, resource_id, outputs, deployment(replicas=4), ignoreChanges=["spec.replicas"])

    assert apps.read_namespaced_deployment("cu", "tenant-a").spec.replicas == 1
    assert owners(apps) == [("pulumi-kubernetes-#", "Apply", None)]


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_without_force_a_scaled_deployment_conflicts(
    connect_to_cluster: Callable[..., Provider], apps: Any, *, preview: bool
) -> None:
    provider = connect_to_cluster()
    resource_id, outputs = create_and_update(provider)
    scale(apps, 3)

    with pytest.raises(grpc.RpcError) as refused:
        provider.update(DEPLOYMENT, resource_id, outputs, deployment(), preview=preview)

    assert (
        'had an apply conflict: Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using '
        "apps/v1: .spec.replicas"
    ) in str(refused.value.details())
    assert apps.read_namespaced_deployment("cu", "tenant-a").spec.replicas == 3


@pytest.mark.parametrize("set_by", ["provider", "annotation"])
def test_force_restores_a_scaled_deployment(
    connect_to_cluster: Callable[..., Provider], apps: Any, set_by: str
) -> None:
    provider = connect_to_cluster(**({"enablePatchForce": "true"} if set_by == "provider" else {}))
    inputs_with_force = deployment()
    if set_by == "annotation":
        inputs_with_force["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    resource_id, outputs = create_and_update(provider)
    outputs = provider.update(DEPLOYMENT, resource_id, outputs, inputs_with_force)
    scale(apps, 3)

    _, live_outputs, inputs = provider.read(DEPLOYMENT, resource_id, outputs, inputs_with_force)
    assert inputs["spec"]["replicas"] == live_outputs["spec"]["replicas"] == 3
    assert provider.list_changes(DEPLOYMENT, resource_id, live_outputs, inputs_with_force) == ["spec.replicas"]
    assert (
        provider.update(DEPLOYMENT, resource_id, live_outputs, inputs_with_force, preview=True)["spec"]["replicas"] == 1
    )
    assert apps.read_namespaced_deployment("cu", "tenant-a").spec.replicas == 3
    healed = provider.update(DEPLOYMENT, resource_id, live_outputs, inputs_with_force)

    assert apps.read_namespaced_deployment("cu", "tenant-a").spec.replicas == 1
    assert owners(apps) == [("pulumi-kubernetes-#", "Apply", None)]
    assert provider.list_changes(DEPLOYMENT, resource_id, healed, inputs_with_force) == []


def test_every_conflict_names_its_owner(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    provider = connect_to_cluster()
    resource_id, outputs = create_and_update(provider)
    scale(apps, 3)
    change = {"spec": {"template": {"metadata": {"labels": {"app": "else"}}}}, "metadata": {"labels": {"app": "else"}}}
    apps.patch_namespaced_deployment("cu", "tenant-a", change, field_manager="kubectl-edit")

    with pytest.raises(grpc.RpcError) as refused:
        provider.update(DEPLOYMENT, resource_id, outputs, deployment())

    assert str(refused.value.details()).endswith(
        'Apply failed with 3 conflicts: conflicts with "kubectl" with subresource "scale" using apps/v1:\n'
        '- .spec.replicas\nconflicts with "kubectl-edit" using apps/v1:\n- .metadata.labels.app\n'
        "- .spec.template.metadata.labels.app"
    )


def test_fields_removed_from_the_manifest_are_deleted(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    """Fields that another manager owns as well are kept."""
    provider = connect_to_cluster()
    resource_id, outputs = create_and_update(provider)
    outputs = provider.update(DEPLOYMENT, resource_id, outputs, deployment(mine="x", shared="y"))
    apps.patch_namespaced_deployment("cu", "tenant-a", {"metadata": {"labels": {"shared": "z"}}}, field_manager="edit")
    apps.patch_namespaced_deployment("cu", "tenant-a", {"metadata": {"labels": {"theirs": "z"}}}, field_manager="edit")

    provider.update(DEPLOYMENT, resource_id, outputs, deployment())

    labels = apps.read_namespaced_deployment("cu", "tenant-a").metadata.labels
    assert labels == {"app": "cu", "shared": "z", "theirs": "z"}


def test_fields_outside_the_manifest_are_not_drift(connect_to_cluster: Callable[..., Provider], apps: Any) -> None:
    provider = connect_to_cluster(enablePatchForce="true")
    resource_id, outputs = create_and_update(provider)
    added = {"metadata": {"annotations": {"theirs": "1"}}, "spec": {"minReadySeconds": 5}}
    apps.patch_namespaced_deployment("cu", "tenant-a", added, field_manager="other")

    _, live_outputs, inputs = provider.read(DEPLOYMENT, resource_id, outputs, deployment())
    assert inputs == deployment()
    provider.update(DEPLOYMENT, resource_id, live_outputs, deployment(image="spark:2"))

    live = apps.read_namespaced_deployment("cu", "tenant-a")
    assert (live.metadata.annotations, live.spec.min_ready_seconds) == ({"theirs": "1"}, 5)
    assert live.spec.template.spec.containers[0].image == "spark:2"


def test_a_list_item_removed_from_the_manifest_is_deleted(
    connect_to_cluster: Callable[..., Provider], apps: Any
) -> None:
    provider = connect_to_cluster()
    both = deployment()
    both["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "x"})
    resource_id, outputs = provider.create(DEPLOYMENT, both)
    outputs = provider.update(DEPLOYMENT, resource_id, outputs, both)

    provider.update(DEPLOYMENT, resource_id, outputs, deployment())

    containers = apps.read_namespaced_deployment("cu", "tenant-a").spec.template.spec.containers
    assert [container.name for container in containers] == ["spark"]


def test_a_change_of_an_immutable_field_is_refused(connect_to_cluster: Callable[..., Provider]) -> None:
    provider = connect_to_cluster()
    resource_id, outputs = create_and_update(provider)
    changed_inputs = deployment()
    changed_inputs["spec"]["selector"] = {"matchLabels": {"app": "else"}}

    assert list(provider.diff(DEPLOYMENT, resource_id, outputs, changed_inputs).replaces) == [
        "spec.selector.matchLabels.app"
    ]
    with pytest.raises(grpc.RpcError) as refused:
        provider.update(DEPLOYMENT, resource_id, outputs, changed_inputs)
    assert 'spec.selector: Invalid value: {"matchLabels":{"app":"else"}}: field is immutable' in str(
        refused.value.details()
    )


def test_a_preview_before_its_namespace_shows_the_inputs(connect_to_cluster: Callable[..., Provider]) -> None:
    elsewhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "later"}}

    assert connect_to_cluster().create(CONFIG_MAP, elsewhere, preview=True) == ("", elsewhere)


def test_a_deleted_namespace_deletes_its_objects(connect_to_cluster: Callable[..., Provider]) -> None:
    provider = connect_to_cluster()
    resource_id, outputs = create_and_update(provider)
    namespace_id, state, _ = provider.read(NAMESPACE, "tenant-a", inputs=TENANT)
    provider.delete(NAMESPACE, namespace_id, state)

    assert provider.read(DEPLOYMENT, resource_id, outputs, deployment())[0] == ""
    provider.delete(DEPLOYMENT, resource_id, outputs)


def test_a_real_cluster_is_refused_with_the_plugin(
    kubernetes_port: int, connect: Callable[[int], Provider], tmp_path: Path
) -> None:
    """Real clusters of a laptop are on loopback, too."""

    async def foreign_cluster(scope: Any, _receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body = json.dumps({"gitVersion": "v1.36.2", "platform": "linux/amd64"}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    file = tmp_path / "kubeconfig"
    with serve(foreign_cluster) as endpoint:
        file.write_text(kubeconfig(endpoint))
        request = provider_pb2.CheckRequest(urn="u", news=to_struct({"kubeconfig": str(file)}))
        (failure,) = connect(kubernetes_port).stub.CheckConfig(request).failures

    assert "is not a sandbox's" in failure.reason
    assert "pulumi plugin install resource kubernetes" in failure.reason
