"""Computing units of Texera: labels, database, catalogs, the proxy in the pod, and registration, without any secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.kubernetes import manifests, texera
from lakewright.kubernetes.settings import ClusterSettings, TexeraSettings
from lakewright.spec import TenantSpec, parse_spec
from lakewright.spec.quota import count_amounts, sum_amounts
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import TokenFileAuth

CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="executions", id="0198")],
)
TOKEN_CATALOG = CATALOG.model_copy(
    update={"auth": TokenFileAuth(kind="token-file", path="/var/run/secrets/lakekeeper/token")}
)
STARTS: dict[str, Any] = {
    "database": {
        "address": "db.texera.svc:5432/texera_db",
        "username": "units",
        "password": {"name": "texera-database", "key": "password"},
    },
    "jwt_secret": {"name": "texera", "key": "jwt"},
}
"""Settings that units of Texera need to start."""
DATABASE = {"address": "texera-db.platform.svc:5432/texera_iceberg_catalog", "username": "texera"}


def tenant(**changes: Any) -> TenantSpec:
    unit = {"name": "workflows", "runtime": "texera", "warehouses": "all", "size": "medium", **changes}
    return parse_spec(
        {
            "version": 1,
            "environment": "production",
            "name": "acme",
            "owner": "data@acme.example",
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions"}],
            "computing_units": [unit],
        },
        "spec",
    )


def template(tenant_spec: TenantSpec, config: CatalogConfig = CATALOG, **settings: Any) -> dict[str, Any]:
    cluster = ClusterSettings.model_validate({"texera": settings})
    spec = manifests.deployment_spec(tenant_spec, tenant_spec.computing_units[0], config, "image", cluster=cluster)
    return spec["template"]


def variables(pod: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"] if "value" in entry}


def secrets(pod: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return Secret and key of each variable that Kubernetes reads from a Secret."""
    entries = [entry for entry in pod["spec"]["containers"][0]["env"] if "valueFrom" in entry]
    sources = {entry["name"]: entry["valueFrom"]["secretKeyRef"] for entry in entries}
    return {name: (source["name"], source["key"]) for name, source in sources.items()}


def test_pod_has_the_labels_and_host_name_that_texera_gives() -> None:
    pod = template(tenant(texera={"cuid": 7}))

    assert pod["metadata"]["labels"].items() >= {"type": "computing-unit", "cuid": "7", "name": "workflows"}.items()
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("workflows", "computing-units")
    assert pod["spec"]["containers"][0]["ports"][0]["containerPort"] == 8085


def test_database_and_jwt_secret_come_from_secrets() -> None:
    """ComputingUnitMaster connects to the database when it starts, and verifies users' tokens by the secret."""
    pod = template(tenant(), **STARTS)

    assert (
        variables(pod).items()
        >= {
            "STORAGE_JDBC_URL": "jdbc:postgresql://db.texera.svc:5432/texera_db?currentSchema=texera_db,public",
            "STORAGE_JDBC_USERNAME": "units",
        }.items()
    )
    assert secrets(pod) == {
        "STORAGE_JDBC_PASSWORD": ("texera-database", "password"),
        "AUTH_JWT_SECRET": ("texera", "jwt"),
    }


def test_files_of_datasets_are_read_as_a_user() -> None:
    """Without USER_JWT_TOKEN, Texera asks LakeFS with S3 keys, which units do not have."""
    token, file_service = {"name": "texera-unit", "key": "user-token"}, "http://file-service.texera.svc:9092"
    settings = {**STARTS, "user_token": token, "egress": [file_service]}
    (unit,) = tenant().computing_units

    assert secrets(template(tenant(), **settings))["USER_JWT_TOKEN"] == ("texera-unit", "user-token")
    assert "USER_JWT_TOKEN" not in secrets(template(tenant(), **STARTS))
    assert "USER_JWT_TOKEN" not in secrets(template(tenant(runtime="spark"), **settings))
    assert texera.list_service_urls(unit, TexeraSettings.model_validate(settings))[-1] == file_service


def test_units_of_spark_get_nothing_of_texera() -> None:
    pod = template(tenant(runtime="spark"), TOKEN_CATALOG, **STARTS)

    assert secrets(pod) == {}
    assert not [name for name in variables(pod) if name.startswith(("STORAGE_", "AUTH_"))]
    assert len(pod["spec"]["containers"]) == 1


def test_password_of_the_postgres_catalog_comes_from_a_secret() -> None:
    password = {"name": "texera-catalog", "key": "password"}

    pod = template(tenant(texera={"catalog": "postgres"}), TOKEN_CATALOG, postgres=DATABASE | {"password": password})

    assert secrets(pod) == {"STORAGE_ICEBERG_CATALOG_POSTGRES_PASSWORD": ("texera-catalog", "password")}
    assert len(pod["spec"]["containers"]) == 1, "there is no catalog to authenticate to"


def test_postgres_catalog_may_have_no_password() -> None:
    pod = template(tenant(texera={"catalog": "postgres"}), postgres=DATABASE)

    values = variables(pod)
    assert values["STORAGE_ICEBERG_CATALOG_TYPE"] == "postgres"
    assert values["STORAGE_ICEBERG_CATALOG_POSTGRES_URI_WITHOUT_SCHEME"] == DATABASE["address"]
    assert values["STORAGE_ICEBERG_CATALOG_POSTGRES_USERNAME"] == "texera"
    assert not [name for name in values if "PASSWORD" in name or "REST_" in name]


def test_environment_chooses_the_catalog_unless_the_unit_does() -> None:
    settings: dict[str, Any] = {"catalog": "postgres", "postgres": DATABASE}

    assert variables(template(tenant(), **settings))["STORAGE_ICEBERG_CATALOG_TYPE"] == "postgres"
    values = variables(template(tenant(texera={"catalog": "rest"}), **settings))
    assert values["STORAGE_ICEBERG_CATALOG_TYPE"] == "rest"
    assert values["STORAGE_ICEBERG_CATALOG_REST_URI"] == "https://lakekeeper.example/catalog"


def test_databases_are_reached_by_units_that_use_them() -> None:
    settings = ClusterSettings.model_validate({"texera": {"postgres": DATABASE, **STARTS}}).texera
    (with_catalog,) = tenant(texera={"catalog": "postgres"}).computing_units
    (without,) = tenant().computing_units
    (spark,) = tenant(runtime="spark").computing_units
    database_url = "postgresql://db.texera.svc:5432/texera_db"

    assert texera.list_service_urls(with_catalog, settings) == [database_url, f"postgresql://{DATABASE['address']}"]
    assert texera.list_service_urls(without, settings) == [database_url]
    assert texera.list_service_urls(spark, settings) == []
    mistake = texera.find_catalog_mistake(with_catalog, ClusterSettings().texera)
    assert "expected `kubernetes.texera.postgres`" in str(mistake)


def test_unit_that_cannot_start_is_refused_outside_trials() -> None:
    (unit,), nothing = tenant().computing_units, ClusterSettings().texera
    complete = ClusterSettings.model_validate({"texera": STARTS}).texera

    mistake = texera.find_start_mistake(unit, nothing, trial=False)
    assert str(mistake).startswith("expected `database` and `jwt_secret` for unit `workflows`")
    without_secret = complete.model_copy(update={"jwt_secret": None})
    assert str(texera.find_start_mistake(unit, without_secret, trial=False)).startswith("expected `jwt_secret` for")
    assert texera.find_start_mistake(unit, nothing, trial=True) is None
    assert texera.find_start_mistake(unit, complete, trial=False) is None
    assert texera.find_start_mistake(tenant(runtime="spark").computing_units[0], nothing, trial=False) is None


def test_token_is_in_the_proxy_alone() -> None:
    pod = template(tenant(), TOKEN_CATALOG, **STARTS)["spec"]

    (unit,), (proxy,) = pod["containers"], pod["initContainers"]
    token = {"name": "token", "mountPath": "/var/run/secrets/lakekeeper", "readOnly": True}
    assert token in proxy["volumeMounts"]
    assert not [mount for mount in unit["volumeMounts"] if mount["name"] == "token"]
    assert [volume for volume in pod["volumes"] if volume["name"] == "token"]
    assert "token" not in json.dumps(unit)
    uri = {variable["name"]: variable.get("value") for variable in unit["env"]}["STORAGE_ICEBERG_CATALOG_REST_URI"]
    assert uri == "http://127.0.0.1:8181/catalog"


def test_files_of_the_unit_name_the_proxy_without_a_credential() -> None:
    """Programs of users that read the unit's configuration use the proxy as well."""
    (unit,) = tenant().computing_units

    files = manifests.list_config_files(unit, TOKEN_CATALOG)

    config = CatalogConfig.from_json(files["catalog.json"])
    assert (config.uri, config.auth.kind) == ("http://127.0.0.1:8181/catalog", "none")
    assert "/var/run/secrets" not in files["spark.properties"] + files[".pyiceberg.yaml"]
    assert "lakekeeper.example" in files["nginx.conf"]


def test_proxy_is_admitted_by_the_restricted_standard() -> None:
    (proxy,) = template(tenant(), TOKEN_CATALOG, proxy_image="nginx@sha256:0")["spec"]["initContainers"]

    assert proxy["image"] == "nginx@sha256:0"
    assert proxy["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert proxy["resources"]["requests"] == proxy["resources"]["limits"]
    assert {"name": "proxy-scratch", "mountPath": "/tmp"} in proxy["volumeMounts"]
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= proxy.keys()


def test_proxy_ends_after_the_unit() -> None:
    """Kubernetes ends containers at the same time, but native sidecars after them: a stopping unit still commits."""
    pod = template(tenant(), TOKEN_CATALOG, **STARTS)["spec"]

    assert [container["name"] for container in pod["containers"]] == ["texera"]
    assert [(part["name"], part["restartPolicy"]) for part in pod["initContainers"]] == [("catalog-proxy", "Always")]


def test_quota_covers_the_proxy() -> None:
    unit = count_amounts(tenant().computing_units[0].size)

    need = sum_amounts(tenant().computing_units, None)

    assert (need.cpu, need.pods) == (unit.cpu + 100, 1)
    assert need.memory == unit.memory + 256 * 1024**2
    assert sum_amounts(tenant(texera={"catalog": "postgres"}).computing_units, None) == unit


def test_new_address_of_the_catalog_restarts_the_pod() -> None:
    moved = TOKEN_CATALOG.model_copy(update={"uri": "https://moved.example/catalog"})

    digests = {
        template(tenant(), catalog)["metadata"]["annotations"]["lakewright/catalog-sha256"]
        for catalog in (TOKEN_CATALOG, moved)
    }

    assert len(digests) == 2


def test_proxy_trusts_the_authorities_of_the_platform() -> None:
    trusting = TOKEN_CATALOG.model_copy(update={"ca_bundle": "/etc/lakewright-trust/ca.pem"})
    (unit,) = tenant().computing_units

    with_bundle = manifests.list_config_files(unit, trusting)["nginx.conf"]
    without = manifests.list_config_files(unit, TOKEN_CATALOG)["nginx.conf"]

    assert 'proxy_ssl_trusted_certificate "/etc/lakewright-trust/ca.pem";' in with_bundle
    assert 'proxy_ssl_trusted_certificate "/etc/ssl/certs/ca-certificates.crt";' in without
    assert "proxy_ssl_verify on;" in without


def test_addresses_of_texera_come_from_the_environment() -> None:
    address = "http://file-service.texera.svc:9092/api/dataset/presign-download"

    values = variables(template(tenant(), variables={"FILE_SERVICE_GET_PRESIGNED_URL_ENDPOINT": address}))

    assert values["FILE_SERVICE_GET_PRESIGNED_URL_ENDPOINT"] == address


def test_limits_of_the_proxy_come_from_the_environment() -> None:
    (unit,) = tenant().computing_units
    cluster = ClusterSettings.model_validate({"texera": {"proxy_timeout": 300, "proxy_max_body_size": 67_108_864}})

    config = manifests.list_config_files(unit, TOKEN_CATALOG, cluster)["nginx.conf"]

    assert "proxy_read_timeout 300s;" in config
    assert "client_max_body_size 67108864;" in config


def test_options_of_java_are_added_to_the_options_of_the_stack() -> None:
    """The last of equal options has effect in Java, so the environment's options do."""
    trusting = CATALOG.model_copy(update={"truststore": "/trust/ca.p12"})

    options = variables(template(tenant(), trusting, variables={"JAVA_OPTS": "-XX:MaxRAMPercentage=60 -Da=b"}))

    assert options["JAVA_OPTS"].split() == [
        "-XX:MaxRAMPercentage=75.0",
        "-Djavax.net.ssl.trustStore=/trust/ca.p12",
        "-Djavax.net.ssl.trustStorePassword=changeit",
        "-XX:MaxRAMPercentage=60",
        "-Da=b",
    ]


@pytest.mark.parametrize("kind", ["rest", "postgres"])
def test_variables_of_the_stack_are_refused(kind: str) -> None:
    """Another address of the catalog would bypass the proxy."""
    with_authorities = TOKEN_CATALOG.model_copy(update={"ca_bundle": "/trust/ca.pem", "truststore": "/trust/ca.p12"})
    names = variables(template(tenant(texera={"catalog": kind}), with_authorities, postgres=DATABASE))
    settings = TexeraSettings(variables=dict.fromkeys(names, "a"))
    (unit,) = tenant(texera={"catalog": kind}).computing_units

    mistakes = dict(texera.list_variable_mistakes(unit, settings, ca_bundle="/trust/ca.pem"))

    assert names.keys() - mistakes.keys() == {"JAVA_OPTS"}
    assert mistakes["STORAGE_ICEBERG_CATALOG_TYPE"] == "is set by the stack, from `kubernetes.texera.catalog`"


def test_variables_that_the_stack_does_not_set_are_free() -> None:
    """Images may have certificate authorities of their own where the environment names none.

    The stack sets no variable of a kind of catalog that the unit does not have.
    """
    names = (
        "STORAGE_ICEBERG_TABLE_COMMIT_BATCH_SIZE",
        "REQUESTS_CA_BUNDLE",
        "JAVA_OPTS",
        "STORAGE_ICEBERG_CATALOG_POSTGRES_USERNAME",
    )
    settings = TexeraSettings(variables=dict.fromkeys(names, "a"))
    (unit,), (spark,) = tenant().computing_units, tenant(runtime="spark").computing_units

    assert texera.list_variable_mistakes(unit, settings, ca_bundle=None) == []
    assert [name for name, _ in texera.list_variable_mistakes(unit, settings, ca_bundle="/a")] == [names[1]]
    assert texera.list_variable_mistakes(spark, settings, ca_bundle="/a") == []


def test_registration_has_address_and_limits() -> None:
    active, idle = tenant(), tenant(idle_after="2h")

    assert manifests.texera_registration(active, active.computing_units[0]) == {
        "name": "workflows",
        "unitType": "local",
        "uri": "workflows.computing-units.tenant-acme.svc:8085",
        "cpuLimit": "2",
        "memoryLimit": "8Gi",
        "gpuLimit": "0",
        "jvmMemorySize": "8Gi",
        "shmSize": "1Gi",
    }
    uri = manifests.texera_registration(idle, idle.computing_units[0])["uri"]
    assert uri == "workflows.tenant-acme.svc:8085", "the activator answers there"
