"""A platform with all its parts on a real API server, by the sandbox's provider and by the real plugin."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]

from tests.certificates import write_server_certificate
from tests.control_plane import ControlPlane, build_path
from tests.platform_documents import trial
from tests.platform_project import PlatformStack, create_platform

DATABASE_PROXY: dict[str, Any] = {
    "name": "database-proxy",
    "image": "proxy",
    "restartPolicy": "Always",
    "resources": {"requests": {"cpu": "100m"}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    },
}


@pytest.fixture(scope="module")
def namespace(provider_home: Path) -> str:
    return f"platform-{abs(hash(provider_home)) % 10**8}"


@pytest.fixture(scope="module")
def platform(
    tmp_path_factory: pytest.TempPathFactory, cluster: ControlPlane, provider_home: Path, namespace: str
) -> Iterator[PlatformStack]:
    """A deployed platform: OpenFGA and Postgres beside it, an autoscaler, TLS, routes and an AWS identity."""
    folder = tmp_path_factory.mktemp("platform")
    stack = create_platform(
        folder,
        every_part(namespace),
        render=False,
        KUBECONFIG=str(cluster.kubeconfig),
        PULUMI_HOME=str(provider_home),
        NATS_CREDENTIALS="credentials-of-nats",
    )
    stack.environ["GATEWAY_KEY"] = write_server_certificate(stack.folder / "gateway.pem")
    stack.up()
    yield stack
    stack.output("destroy", "--yes", "--engine", "embedded")


def every_part(namespace: str) -> dict[str, Any]:
    """Return a spec with an object of every kind that a platform has."""
    route = {"kind": "ingress", "class_name": "nginx", "tls_secret": "tls", "controller_namespace": "ingress-nginx"}
    return trial(
        namespace=namespace,
        server={
            "version": "0.13.3",
            "image": "quay.io/lakekeeper/catalog:v0.13.3",
            "autoscaling": {"min": 2, "max": 3},
            "authentication": {"kubernetes": {"audience": ["lakekeeper"]}},
            "authorization": {"openfga": {"server": {"image": "openfga/openfga:v1.11.0"}}},
            "events": {
                "nats": {"address": "tls://nats.example:4222", "topic": "t"}
                | {"credentials_file": "env:NATS_CREDENTIALS"}
            },
            "ca_bundle": "gateway.pem",
            "extra_pod_parts": {"init_containers": [DATABASE_PROXY]},
            "monitoring_namespace": "monitoring",
        },
        gateway={
            "image": "nginx",
            "tls": {"certificate": "gateway.pem", "key": "env:GATEWAY_KEY"},
            "route": {**route, "host": "catalog.example"},
        },
        management={"route": {**route, "host": "lakekeeper.example"}},
        aws={"role_arn": "arn:aws:iam::111122223333:role/lakekeeper"},
        allow_plain_http=True,
    )


def objects(stack: PlatformStack) -> list[dict[str, Any]]:
    """Return the manifests in the stack's state, without those with secrets."""
    state = json.loads(stack.output("stack", "export"))
    manifests = [
        resource["outputs"]["__inputs"]
        for resource in state["deployment"]["resources"]
        if resource["type"].startswith("kubernetes:") and resource.get("custom")
    ]
    return [manifest for manifest in manifests if manifest["kind"] != "Secret"]


def names_in_cluster(http: httpx.Client) -> set[str]:
    """Return kind and name of the objects that are in no namespace."""
    paths = ("/api/v1/namespaces", *(f"/apis/rbac.authorization.k8s.io/v1/clusterrole{s}" for s in ("s", "bindings")))
    return {f"{path} {item['metadata']['name']}" for path in paths for item in http.get(path).json()["items"]}


def test_every_manifest_is_accepted_without_warning(platform: PlatformStack, cluster: ControlPlane) -> None:
    """Server-side apply of the same manifest, as a dry run, shows the warnings that a create would have had."""
    responses = {}
    for manifest in objects(platform):
        response = cluster.apply(manifest, dryRun="All", fieldValidation="Strict")
        responses[build_path(manifest)] = (response.status_code, response.headers.get("warning"))

    assert len(responses) > 30
    assert responses == dict.fromkeys(responses, (200, None))


def test_the_migration_ends_before_the_server_starts(
    platform: PlatformStack, cluster: ControlPlane, namespace: str, provider_home: Path
) -> None:
    if not list(provider_home.glob("plugins/resource-kubernetes-v*")):
        pytest.skip("the sandbox's provider does not wait for Jobs; the real plugin does")
    jobs = kubernetes_client.BatchV1Api(cluster.api_client()).list_namespaced_job(namespace).items
    (job,) = [job for job in jobs if job.metadata.name.startswith("lakekeeper-migrate")]
    server = kubernetes_client.AppsV1Api(cluster.api_client()).read_namespaced_deployment("lakekeeper", namespace)

    ended: datetime = job.status.completion_time
    assert ended <= server.metadata.creation_timestamp


def test_the_server_may_review_tokens_and_nothing_else(
    platform: PlatformStack, cluster: ControlPlane, namespace: str
) -> None:
    reviews = kubernetes_client.AuthorizationV1Api(cluster.api_client())

    def is_allowed(group: str, resource: str, verb: str) -> bool:
        attributes = {"group": group, "resource": resource, "verb": verb, "namespace": namespace}
        user = f"system:serviceaccount:{namespace}:lakekeeper"
        review = reviews.create_subject_access_review({"spec": {"user": user, "resourceAttributes": attributes}})
        return bool(review.status.allowed)

    assert is_allowed("authentication.k8s.io", "tokenreviews", "create")
    assert not is_allowed("", "secrets", "get")
    assert not is_allowed("authorization.k8s.io", "subjectaccessreviews", "create")
    assert not is_allowed("", "pods", "list")


def test_no_pod_has_a_secret_as_value_or_argument(
    platform: PlatformStack, cluster: ControlPlane, namespace: str
) -> None:
    core = kubernetes_client.CoreV1Api(cluster.api_client())
    secrets = [secret for secret in core.list_namespaced_secret(namespace).items if secret.data]
    values = {value for secret in secrets for key, value in secret.data.items() if key != "tls.crt"}
    decoded = kubernetes_client.ApiClient()
    pods = json.dumps(decoded.sanitize_for_serialization(core.list_namespaced_pod(namespace).items))

    assert len(values) > 5
    for value in values:
        assert base64.b64decode(value).decode() not in pods


def test_a_pod_with_privileges_is_refused(platform: PlatformStack, cluster: ControlPlane, namespace: str) -> None:
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}

    response = cluster.http().post(f"/api/v1/namespaces/{namespace}/pods", json=pod)

    assert response.status_code == 403
    assert "violates PodSecurity" in response.text


def test_a_change_in_the_cluster_is_found_and_fixed(
    platform: PlatformStack, cluster: ControlPlane, namespace: str
) -> None:
    core = kubernetes_client.CoreV1Api(cluster.api_client())
    core.patch_namespaced_config_map("lakekeeper-gateway", namespace, {"data": {"nginx.conf": "events {}"}})

    preview = json.loads(platform.output("preview", "--refresh", "--engine", "embedded", "--json"))
    platform.up("--refresh")

    assert {step["name"] for step in preview["steps"] if step["op"] == "update"} == {"lakekeeper-gateway-config"}
    assert "proxy_pass" in core.read_namespaced_config_map("lakekeeper-gateway", namespace).data["nginx.conf"]


def test_destroy_leaves_nothing(platform: PlatformStack, cluster: ControlPlane, namespace: str) -> None:
    """This test is the last one: it ends the module's platform."""
    with cluster.http() as http:
        before = names_in_cluster(http)
        platform.output("destroy", "--yes", "--engine", "embedded")
        after = names_in_cluster(http)

    of_platform = {name for name in before if namespace in name}
    assert len(of_platform) == 3, "the namespace, the ClusterRole and its binding"
    assert not of_platform & after
