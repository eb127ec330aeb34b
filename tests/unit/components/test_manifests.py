"""Manifests of a computing unit: restricted, closed but for a few ports, without keys or database settings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.kubernetes import connect, manifests, namespace_manifests, network
from lakewright.kubernetes.jobs_identity import JobsSecret, PodIdentity
from lakewright.kubernetes.runtimes import catalog_files, environment
from lakewright.spec import ComputingUnitSpec, TenantSpec, parse_spec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenFileAuth

CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    warehouses=[
        CatalogWarehouse(name="executions", id="0198"),
        CatalogWarehouse(name="curated", id="0199"),
    ],
)


def _tenant() -> TenantSpec:
    return parse_spec(
        {
            "version": 1,
            "environment": "production",
            "name": "acme",
            "owner": "data@acme.example",
            "labels": {"cost-center": "4711"},
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions"}, {"name": "curated"}],
            "computing_units": [
                {"name": "notebook", "runtime": "spark", "warehouse": "curated", "size": {"cpu": 2, "memory": "8Gi"}},
                {
                    "name": "workflows",
                    "runtime": "texera",
                    "warehouses": "all",
                    "size": {"memory": "4Gi", "shm": "1Gi"},
                },
            ],
        },
        "spec",
    )


TENANT = _tenant()
SPARK, TEXERA = TENANT.computing_units


def _pod(unit: ComputingUnitSpec, catalog: CatalogConfig = CATALOG) -> dict[str, Any]:
    return manifests.deployment_spec(TENANT, unit, catalog, "example/image@sha256:0")["template"]["spec"]


@pytest.mark.parametrize("unit", [SPARK, TEXERA], ids=lambda unit: unit.runtime)
def test_pods_meet_the_restricted_standard(unit: ComputingUnitSpec) -> None:
    pod = _pod(unit)
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert pod["automountServiceAccountToken"] is False
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]


@pytest.mark.parametrize("unit", [SPARK, TEXERA], ids=lambda unit: unit.runtime)
def test_no_s3_key_and_no_database_setting_reaches_a_unit(unit: ComputingUnitSpec) -> None:
    names = set(environment(unit.runtime, CATALOG))
    # The redaction pattern of Spark's log names such settings and contains none.
    hidden = CATALOG.spark_properties()["spark.redaction.regex"]
    files = {name: text.replace(hidden, "") for name, text in catalog_files(CATALOG).items()}
    pod = _pod(unit)
    text = json.dumps([pod["containers"][0]["env"], files]).lower()

    assert not [name for name in names if any(word in name for word in ("JDBC", "POSTGRES", "S3_", "AWS", "SECRET"))]
    for word in ("access-key", "accesskey", "secret", "password", "jdbc", "postgres"):
        assert word not in text, word
    mounted = {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    assert mounted == connect.secret_names(unit)


def test_unit_gets_its_size() -> None:
    (container,) = _pod(SPARK)["containers"]

    assert container["resources"]["limits"] == {"cpu": "2", "memory": "8Gi", "ephemeral-storage": "10Gi"}
    shm = next(volume for volume in _pod(TEXERA)["volumes"] if volume["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
    scratch = next(volume for volume in _pod(SPARK)["volumes"] if volume["name"] == "scratch")
    assert scratch["emptyDir"] == {"sizeLimit": "10Gi"}


def test_texera_reads_the_catalog_under_its_own_names() -> None:
    bound = environment("texera", CATALOG.select_warehouses(["curated"]))
    free = environment("texera", CATALOG)

    assert bound["STORAGE_ICEBERG_CATALOG_TYPE"] == "rest"
    assert bound["STORAGE_ICEBERG_CATALOG_REST_URI"] == "https://lakekeeper.example/catalog"
    assert bound["STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME"] == "acme/curated"
    assert free["STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME"] == "acme/executions"
    assert free["STORAGE_ICEBERG_TABLE_RESULT_NAMESPACE"] == "operator-port-result"


def test_unit_reads_the_catalog_from_files() -> None:
    files = catalog_files(CATALOG.select_warehouses(["curated"]))

    assert CatalogConfig.from_json(files["catalog.json"]).warehouses[0].name == "curated"
    assert "spark.sql.defaultCatalog curated" in files["spark.properties"]
    assert "curated" in files[".pyiceberg.yaml"]


def test_unit_trusts_the_authorities_of_its_platform() -> None:
    catalog = CATALOG.model_copy(update={"ca_bundle": "/etc/trust.pem", "truststore": "/etc/trust.p12"})

    assert environment("texera", catalog)["REQUESTS_CA_BUNDLE"] == "/etc/trust.pem"
    assert "REQUESTS_CA_BUNDLE" not in environment("texera", CATALOG)
    for process in ("driver", "executor"):
        expected = f"spark.{process}.extraJavaOptions -Djavax.net.ssl.trustStore=/etc/trust.p12"
        assert expected in catalog_files(catalog)["spark.properties"]


def test_changed_catalog_restarts_the_pod() -> None:
    def annotations(catalog: CatalogConfig) -> Any:
        spec = manifests.deployment_spec(TENANT, SPARK, catalog, "image")
        return spec["template"]["metadata"]["annotations"]

    assert annotations(CATALOG) == annotations(CATALOG)
    assert annotations(CATALOG) != annotations(CATALOG.select_warehouses(["curated"]))


def test_catalog_token_has_no_other_audience() -> None:
    path = "/var/run/secrets/lakekeeper/token"
    pod = _pod(SPARK, CATALOG.model_copy(update={"auth": TokenFileAuth(kind="token-file", path=path)}))

    volume = next(volume for volume in pod["volumes"] if volume["name"] == "token")
    (source,) = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "lakekeeper"
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert f"{mounts['token']}/{source['serviceAccountToken']['path']}" == path


@pytest.mark.parametrize(("audience", "written"), [("prod", {"audience": "prod"}), (None, {})])
def test_unit_token_has_the_environments_audience(audience: str | None, written: dict[str, str]) -> None:
    """Without an audience the cluster issues a token for its own API, which any Lakekeeper in it accepts."""
    auth = TokenFileAuth(kind="token-file", path="/var/run/secrets/lakekeeper/token")
    catalog, identity = CATALOG.model_copy(update={"auth": auth}), PodIdentity(audience=audience)

    pod = manifests.deployment_spec(TENANT, SPARK, catalog, "example/image", identity)["template"]["spec"]

    volume = next(volume for volume in pod["volumes"] if volume["name"] == "token")
    token = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert token == {**written, "expirationSeconds": 3600, "path": "token"}


def test_tenant_namespace_is_closed() -> None:
    deny = namespace_manifests.deny_all(TENANT)["spec"]

    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert (
        namespace_manifests.namespace(TENANT)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        == "restricted"
    )


def test_unit_has_the_few_network_paths_that_it_needs() -> None:
    policy = manifests.network_policy(
        TENANT, TEXERA, ["http://lakekeeper.platform.svc.cluster.local:8181/catalog", "https://10.1.2.3:9000"]
    )["spec"]

    assert [rule["ports"] for rule in policy["ingress"]] == [[{"protocol": "TCP", "port": 8085}]]
    dns, catalog, store = policy["egress"]
    assert [port["port"] for port in dns["ports"]] == [53, 53]
    assert catalog["to"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "platform"}}},
    ]
    assert catalog["ports"][0]["port"] == 8181
    assert store["to"] == [{"ipBlock": {"cidr": "10.1.2.3/32"}}]
    assert store["ports"][0]["port"] == 9000


def test_outside_names_never_open_the_metadata_service() -> None:
    """A name outside the cluster opens no way to the identity of the node."""
    rule = network.allow_egress("https://s3.us-west-2.amazonaws.com")

    assert rule["ports"] == [{"protocol": "TCP", "port": 443}]
    assert "169.254.0.0/16" in rule["to"][0]["ipBlock"]["except"]


@pytest.mark.parametrize("unit", [SPARK, TEXERA], ids=lambda unit: unit.runtime)
def test_cluster_secret_reaches_the_unit_only(unit: ComputingUnitSpec) -> None:
    """No manifest contains its value."""
    secret = JobsSecret(name="lakekeeper-jobs", key="client-secret")

    def pod(reference: str, jobs_secret: JobsSecret | None = secret) -> dict[str, Any]:
        auth = ClientCredentialsAuth(
            kind="client-credentials", token_url="https://idp.example/t", client_id="jobs", client_secret=reference
        )
        catalog = CATALOG.model_copy(update={"auth": auth})
        return manifests.deployment_spec(TENANT, unit, catalog, "example/image", PodIdentity(jobs_secret))["template"][
            "spec"
        ]

    source = {"secretKeyRef": {"name": "lakekeeper-jobs", "key": "client-secret"}}
    assert {"name": "JOBS_SECRET", "valueFrom": source} in pod("env:JOBS_SECRET")["containers"][0]["env"]
    assert "lakekeeper-jobs" not in str(pod("env:JOBS_SECRET", None))

    mounted = pod("file:/var/run/secrets/lakekeeper/secret")
    assert {"name": "credential", "mountPath": "/var/run/secrets/lakekeeper", "readOnly": True} in mounted[
        "containers"
    ][0]["volumeMounts"]
    items = [{"key": "client-secret", "path": "secret"}]
    assert {"name": "credential", "secret": {"secretName": "lakekeeper-jobs", "items": items}} in mounted["volumes"]
