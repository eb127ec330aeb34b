"""Computing units of Texera: its labels, catalogs and registration, without any secret."""

from __future__ import annotations

from typing import Any

from lakewright.kubernetes import manifests, texera
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.spec import TenantSpec, parse_spec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse

CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="executions", id="0198")],
)
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


def template(tenant_spec: TenantSpec, **settings: Any) -> dict[str, Any]:
    cluster = ClusterSettings.model_validate({"texera": settings})
    spec = manifests.deployment_spec(tenant_spec, tenant_spec.computing_units[0], CATALOG, "image", cluster=cluster)
    return spec["template"]


def variables(pod: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}


def test_pod_has_the_labels_and_host_name_that_texera_gives() -> None:
    pod = template(tenant(texera={"cuid": 7}))

    assert pod["metadata"]["labels"].items() >= {"type": "computing-unit", "cuid": "7", "name": "workflows"}.items()
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("workflows", "computing-units")
    assert pod["spec"]["containers"][0]["ports"][0]["containerPort"] == 8085


def test_postgres_catalog_has_no_password() -> None:
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


def test_database_is_reached_by_units_that_use_it() -> None:
    settings = ClusterSettings.model_validate({"texera": {"postgres": DATABASE}}).texera
    (with_database,) = tenant(texera={"catalog": "postgres"}).computing_units
    (without,) = tenant().computing_units

    assert texera.database_url(with_database, settings) == f"postgresql://{DATABASE['address']}"
    assert texera.database_url(without, settings) is None
    assert "expected `kubernetes.texera.postgres`" in str(texera.find_mistake(with_database, ClusterSettings().texera))


def test_addresses_of_texera_come_from_the_environment() -> None:
    address = "http://file-service.texera.svc:9092/api/dataset/presign-download"

    values = variables(template(tenant(), variables={"FILE_SERVICE_GET_PRESIGNED_URL_ENDPOINT": address}))

    assert values["FILE_SERVICE_GET_PRESIGNED_URL_ENDPOINT"] == address


def test_registration_has_address_and_limits() -> None:
    active, idle = tenant(), tenant(idle_after="2h")

    assert manifests.texera_registration(active, active.computing_units[0]) == {
        "name": "workflows",
        "unitType": "local",
        "uri": "workflows.computing-units.tenant-acme.svc.cluster.local:8085",
        "cpuLimit": "2",
        "memoryLimit": "8Gi",
        "gpuLimit": "0",
        "jvmMemorySize": "8Gi",
        "shmSize": "1Gi",
    }
    uri = manifests.texera_registration(idle, idle.computing_units[0])["uri"]
    assert uri == "workflows.tenant-acme.svc.cluster.local:8085", "the activator answers there"
