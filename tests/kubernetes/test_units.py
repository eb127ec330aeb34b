"""Limits of a tenant and all settings of units on a real API server: admission, quota, RBAC of ServiceAccounts."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import yaml
from lakewright.kubernetes import manifests
from lakewright.spec import parse_spec
from lakewright.spec.quota import PROXY_SIZE
from lakewright.validation.quantity import parse_bytes, parse_millicores
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import TokenFileAuth
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.control_plane import ControlPlane
from tests.tenant_project import MakeTenant, Tenant, list_changes

UNITS: list[dict[str, Any]] = [
    {"name": "notebook", "runtime": "spark", "warehouse": "executions", "size": {"cpu": 0.5, "memory": "1.5Gi"}},
    {"name": "models", "runtime": "spark", "warehouse": "executions", "size": {"gpu": 1, "shm": "1Gi"}},
    {"name": "workflows", "runtime": "texera", "warehouses": "all", "size": "small", "texera": {"cuid": 7}},
]
CLUSTER: dict[str, Any] = {
    "catalog_pods": {"namespace": "platform", "labels": {"app.kubernetes.io/name": "gateway"}, "port": 8080},
    "outside_cidrs": ["0.0.0.0/0", "::/0"],
    "cluster_cidrs": ["10.0.0.0/8"],
    "gpu": {"resource": "example.com/gpu", "runtime_class": "lakewright-gpu"},
    "texera": {"catalog": "postgres", "postgres": {"address": "db.texera.svc:5432/catalog", "username": "texera"}},
}


@pytest.fixture(scope="module")
def tenant(make_tenant: MakeTenant, cluster: ControlPlane) -> Tenant:
    runtime_class = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "lakewright-gpu"},
        "handler": "gpu",
    }
    with cluster.http() as http:
        http.post("/apis/node.k8s.io/v1/runtimeclasses", json=runtime_class)
    tenant = make_tenant(computing_units=UNITS)
    environment = tenant.folder / "environments" / "sandbox.yaml"
    document = yaml.safe_load(environment.read_text())
    document["kubernetes"] |= CLUSTER
    environment.write_text(yaml.safe_dump(document))
    tenant.up()
    return tenant


def list_running_units(cluster: ControlPlane, namespace: str) -> set[str]:
    pods = cluster.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=type=computing-unit")["items"]
    return {pod["spec"]["hostname"] for pod in pods if pod["status"].get("phase") == "Running"}


def test_all_units_fit_the_quota(namespace: str, cluster: ControlPlane) -> None:
    names = {unit["name"] for unit in UNITS}

    @retry(retry=retry_if_result(lambda running: running != names), wait=wait_fixed(0.2), stop=stop_after_delay(60))
    def list_names() -> set[str]:
        return list_running_units(cluster, namespace)

    assert list_names() == names
    quota = cluster.get(f"/api/v1/namespaces/{namespace}/resourcequotas/{namespace}")["status"]
    # The unit of Texera has a Postgres catalog here, so its pod lacks the proxy that the quota has room for.
    spare = {"cpu": parse_millicores(PROXY_SIZE.cpu), "memory": parse_bytes(PROXY_SIZE.memory)}
    spare["ephemeral-storage"] = parse_bytes(PROXY_SIZE.scratch)
    for name, used in quota["used"].items():
        resource = name.rpartition(".")[2]
        parse = {"cpu": parse_millicores}.get(resource, parse_bytes)
        if resource in spare:
            assert parse(quota["hard"][name]) - parse(used) == spare[resource], name
        else:
            assert quota["hard"][name] == used, name


def test_pod_above_the_quota_is_refused(namespace: str, cluster: ControlPlane, tenant: Tenant) -> None:
    del tenant
    deployment = cluster.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/notebook")
    spec = deployment["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "second"}, "spec": spec}

    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{namespace}/pods", json=pod, params={"dryRun": "All"})

    assert response.status_code == httpx.codes.FORBIDDEN
    assert "exceeded quota" in response.json()["message"]


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_ports_outside_the_cluster_are_refused(
    kind: str, namespace: str, cluster: ControlPlane, tenant: Tenant
) -> None:
    del tenant
    service = {"metadata": {"name": "open"}, "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"a": "b"}}}

    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{namespace}/services", json=service)

    assert response.status_code == httpx.codes.FORBIDDEN
    assert "exceeded quota" in response.json()["message"]


def test_unit_with_a_proxy_is_accepted(namespace: str, cluster: ControlPlane, tenant: Tenant) -> None:
    """The proxy is a native sidecar; an API server that does not know these refuses its probes."""
    spec = parse_spec(tenant.spec, "spec")
    unit = next(unit for unit in spec.computing_units if unit.runtime == "texera")
    auth = TokenFileAuth(kind="token-file", path="/var/run/secrets/lakekeeper/token")
    catalog = CatalogConfig(
        tenant=spec.name,
        uri="https://lakekeeper.example/catalog",
        project_id=spec.name,
        warehouses=[CatalogWarehouse(name="executions", id="0198")],
        auth=auth,
    )
    manifest = manifests.deployment(spec, unit, manifests.deployment_spec(spec, unit, catalog, "image"))
    manifest["metadata"]["name"] = "with-a-proxy"

    with cluster.http() as http:
        response = http.post(
            f"/apis/apps/v1/namespaces/{namespace}/deployments",
            json=manifest,
            params={"dryRun": "All", "fieldValidation": "Strict"},
        )

    assert response.status_code == httpx.codes.CREATED, response.text
    assert response.headers.get("warning") is None
    (proxy,) = response.json()["spec"]["template"]["spec"]["initContainers"]
    assert (proxy["name"], proxy["restartPolicy"]) == ("catalog-proxy", "Always")


def test_texera_unit_may_reach_its_database(namespace: str, cluster: ControlPlane, tenant: Tenant) -> None:
    del tenant
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "texera"}}}
    rule = {"to": [peer], "ports": [{"protocol": "TCP", "port": 5432}]}

    assert rule in cluster.get(f"{path}/workflows")["spec"]["egress"]
    assert rule not in cluster.get(f"{path}/notebook")["spec"]["egress"]


def test_units_have_no_rights_on_the_cluster(namespace: str, cluster: ControlPlane, tenant: Tenant) -> None:
    del tenant
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    with cluster.http() as http:
        response = http.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/notebook/token", json=request)
    with cluster.http(response.raise_for_status().json()["status"]["token"]) as unit:
        refused = [
            unit.get(f"/api/v1/namespaces/{namespace}/{kind}") for kind in ("secrets", "pods", "configmaps", "services")
        ]

    assert [response.status_code for response in refused] == [httpx.codes.FORBIDDEN] * 4


def test_quantities_and_policies_are_no_drift(tenant: Tenant) -> None:
    """The API server rewrites amounts such as 1.5Gi and 0.5 if a manifest has them so."""
    assert list_changes(tenant.verb("preview", "--refresh")) == set()


def test_registration_of_texera_is_an_output(tenant: Tenant, namespace: str) -> None:
    (registration,) = json.loads(tenant.output("stack", "export"))["deployment"]["resources"][0]["outputs"][
        "texera_register"
    ]

    assert registration["uri"] == f"workflows.computing-units.{namespace}.svc:8085"


def test_changed_quota_and_policy_are_found_and_healed(tenant: Tenant, namespace: str, cluster: ControlPlane) -> None:
    merge = {"content-type": "application/merge-patch+json"}
    changes = {
        f"/api/v1/namespaces/{namespace}/resourcequotas/{namespace}": {"spec": {"hard": {"limits.cpu": "99"}}},
        f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/notebook": {"spec": {"egress": [{}]}},
        f"/api/v1/namespaces/{namespace}": {
            "metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
        },
    }
    with cluster.http() as http:
        for path, patch in changes.items():
            http.patch(path, json=patch, headers=merge).raise_for_status()

    drift = {(kind, name) for _, kind, name in list_changes(tenant.verb("preview", "--refresh"))}
    tenant.up("--refresh")

    expected = {
        ("ResourceQuota", tenant.name),
        ("NetworkPolicy", f"{tenant.name}-notebook"),
        ("Namespace", tenant.name),
    }
    assert drift == expected
    quota, policy, namespace_object = (cluster.get(path) for path in changes)
    assert quota["spec"]["hard"]["limits.cpu"] == "2600m"
    assert {} not in policy["spec"]["egress"]
    assert namespace_object["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
