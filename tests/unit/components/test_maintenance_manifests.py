"""Manifests of a tenant's maintenance: restricted, one run at a time, without keys, with a long-lived token."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.kubernetes import manifests
from lakewright.kubernetes.jobs_identity import PodIdentity
from lakewright.kubernetes.maintenance import manifests as maintenance_manifests
from lakewright.kubernetes.runtimes import catalog_files
from lakewright.spec import MaintenanceSpec, TenantSpec, parse_spec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import TokenFileAuth

CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="executions", id="0198")],
)


def _tenant(**maintenance: Any) -> tuple[TenantSpec, MaintenanceSpec]:
    tenant = parse_spec(
        {
            "version": 1,
            "environment": "production",
            "name": "acme",
            "owner": "data@acme.example",
            "labels": {"cost-center": "4711"},
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions"}],
            "maintenance": {"schedule": "0 2 * * *", **maintenance},
        },
        "spec",
    )
    assert tenant.maintenance is not None
    return tenant, tenant.maintenance


def _spec(catalog: CatalogConfig = CATALOG, **maintenance: Any) -> dict[str, Any]:
    tenant, declared = _tenant(**maintenance)
    (cron, *_) = declared.cron_jobs()
    return maintenance_manifests.cron_job_spec(tenant, declared, cron, catalog, "example/jobs@sha256:0")


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    return spec["jobTemplate"]["spec"]["template"]["spec"]


def test_one_run_at_a_time_on_schedule() -> None:
    spec = _spec(deadline="90m")

    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("0 2 * * *", "Etc/UTC", "Forbid")
    job = spec["jobTemplate"]["spec"]
    assert job["backoffLimit"] == 0
    assert job["activeDeadlineSeconds"] == 90 * 60 + 600
    assert _pod(spec)["restartPolicy"] == "Never"


def test_run_has_the_settings_of_the_spec() -> None:
    (container,) = _pod(_spec(parallel=8, jobs=["retention", "compaction"]))["containers"]

    assert container["command"] == ["lakewright-spark", "maintain"]
    options = "--config /etc/lakewright/catalog.json --parallel 8 --deadline 4h --job retention --job compaction"
    assert " ".join(container["args"]) == options


def test_pod_meets_the_restricted_standard() -> None:
    pod = _pod(_spec(size={"cpu": 4, "memory": "8Gi"}))
    (container,) = pod["containers"]

    assert pod["securityContext"] == manifests.pod_security(185)
    assert container["securityContext"] == manifests.container_security()
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi"}
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]
    assert {"name": "catalog", "mountPath": "/etc/lakewright", "readOnly": True} in container["volumeMounts"]


def test_no_key_and_no_database_setting_reaches_the_jobs() -> None:
    # The redaction pattern of Spark's log names such settings and contains none.
    hidden = CATALOG.spark_properties()["spark.redaction.regex"]
    files = {name: text.replace(hidden, "") for name, text in catalog_files(CATALOG).items()}
    text = json.dumps([_spec(), files]).lower()

    for word in ("access-key", "accesskey", "secret", "password", "jdbc", "postgres", "registry"):
        assert word not in text, word


def test_token_outlives_the_run() -> None:
    """Spark takes one token for the whole run, and refuses to start if it would expire before the deadline."""
    path = "/var/run/secrets/lakekeeper/token"
    pod = _pod(_spec(CATALOG.model_copy(update={"auth": TokenFileAuth(kind="token-file", path=path)}), deadline="2h"))

    (volume,) = [item for item in pod["volumes"] if item["name"] == "token"]
    token = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert token == {"audience": "lakekeeper", "expirationSeconds": 2 * 3600 + 600, "path": "token"}


def test_network_of_the_jobs_is_limited() -> None:
    tenant, maintenance = _tenant()
    policy = maintenance_manifests.network_policy(tenant, maintenance, ["https://10.1.2.3:9000"])["spec"]

    assert "ingress" not in policy
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [rule["ports"][0]["port"] for rule in policy["egress"]] == [53, 9000]
    assert policy["podSelector"]["matchLabels"].items() <= maintenance_manifests.labels(tenant).items()
    assert maintenance_manifests.labels(tenant)["cost-center"] == "4711"


@pytest.mark.parametrize(("audience", "written"), [("prod", {"audience": "prod"}), (None, {})])
def test_cron_job_token_has_the_environments_audience(audience: str | None, written: dict[str, str]) -> None:
    auth = TokenFileAuth(kind="token-file", path="/var/run/secrets/lakekeeper/token")
    tenant, maintenance = _tenant(deadline="2h")
    catalog, identity = CATALOG.model_copy(update={"auth": auth}), PodIdentity(audience=audience)

    (cron,) = maintenance.cron_jobs()
    spec = maintenance_manifests.cron_job_spec(tenant, maintenance, cron, catalog, "example/jobs", identity=identity)
    pod = _pod(spec)

    (volume,) = [item for item in pod["volumes"] if item["name"] == "token"]
    token = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert token == {**written, "expirationSeconds": 2 * 3600 + 600, "path": "token"}
