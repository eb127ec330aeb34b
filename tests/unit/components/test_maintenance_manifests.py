"""Manifests of a tenant's maintenance: restricted, one run at a time, without keys, with a long-lived token."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from lakewright.kubernetes import manifests
from lakewright.kubernetes.jobs_identity import PodIdentity
from lakewright.kubernetes.maintenance import executors
from lakewright.kubernetes.maintenance import manifests as maintenance_manifests
from lakewright.kubernetes.runtimes import catalog_files
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.spec import MaintenanceSpec, SpecError, TenantSpec, parse_spec
from lakewright.spec.limits import TenantLimitsSpec
from lakewright.spec.quota import sum_amounts
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
    tenant, maintenance_spec = _tenant(**maintenance)
    (cron, *_) = maintenance_spec.cron_jobs()
    return maintenance_manifests.cron_job_spec(tenant, maintenance_spec, cron, catalog, "example/jobs@sha256:0")


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    return spec["jobTemplate"]["spec"]["template"]["spec"]


def test_pods_of_jobs_have_a_deadline_if_compute_is_limited() -> None:
    """The quota of the limit has pods without a deadline."""
    plain, maintenance = _tenant(executors={"count": 2})
    limited = plain.model_copy(update={"limits": TenantLimitsSpec(compute=100, enforce=True)})

    def read_deadlines(tenant: TenantSpec) -> list[int | None]:
        cron = maintenance_manifests.cron_job_spec(tenant, maintenance, maintenance.cron_jobs()[0], CATALOG, "jobs")
        template = executors.pod_template(
            tenant, maintenance.executors, CATALOG, PodIdentity(), cluster=ClusterSettings(), token_seconds=3600
        )
        pods = [cron["jobTemplate"]["spec"]["template"]["spec"], yaml.safe_load(template)["spec"]]
        return [pod.get("activeDeadlineSeconds") for pod in pods]

    assert read_deadlines(plain) == [None, None]
    assert None not in read_deadlines(limited)


def test_one_run_at_a_time_on_schedule() -> None:
    spec = _spec(deadline="90m")

    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("0 2 * * *", "Etc/UTC", "Forbid")
    job = spec["jobTemplate"]["spec"]
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 3)
    assert spec["startingDeadlineSeconds"] == 3600
    assert job["activeDeadlineSeconds"] == 90 * 60 + 600
    assert _pod(spec)["restartPolicy"] == "Never"


def test_run_has_the_settings_of_the_spec() -> None:
    (container,) = _pod(_spec(parallel=8, jobs=["retention", "compaction"]))["containers"]

    assert container["command"] == ["lakewright-spark", "maintain"]
    options = (
        "--config /etc/lakewright/catalog.json --parallel 8 --deadline 4h --task-timeout 15m "
        "--conf spark.driver.memory=3200m --job retention --job compaction"
    )
    assert " ".join(container["args"]) == options


def test_run_gets_limits_and_spark_properties() -> None:
    pod = _pod(
        _spec(
            task_timeout="2h",
            budget="500GiB",
            size={"cpu": 4, "memory": "16Gi"},
            spark_properties={"spark.sql.shuffle.partitions": "64"},
        )
    )
    (container,) = pod["containers"]
    assert " ".join(container["args"]).endswith(
        "--task-timeout 2h --budget 500GiB --conf spark.driver.memory=14429m --conf spark.sql.shuffle.partitions=64"
    )


def test_job_with_its_own_size_gets_its_heap() -> None:
    tenant, maintenance = _tenant(schedules={"compaction": "0 4 * * *"}, sizes={"compaction": {"memory": "16Gi"}})
    pods = {
        cron.job: _pod(maintenance_manifests.cron_job_spec(tenant, maintenance, cron, CATALOG, "example/jobs"))
        for cron in maintenance.cron_jobs()
    }
    containers = {job: pod["containers"][0] for job, pod in pods.items()}
    assert {job: container["resources"]["limits"]["memory"] for job, container in containers.items()} == {
        None: "4Gi",
        "compaction": "16Gi",
    }
    assert "spark.driver.memory=14429m" in containers["compaction"]["args"]
    assert "spark.driver.memory=3200m" in containers[None]["args"]


def test_driver_with_executors_gets_the_heap_of_its_pod() -> None:
    (container,) = _pod(_spec(size={"cpu": 2, "memory": "8Gi"}, executors={"count": 2}))["containers"]
    assert "spark.driver.memory=6981m" in container["args"]
    assert any("ExitOnOutOfMemoryError" in word for word in container["args"])


def test_driver_options_of_the_spec_reach_the_driver() -> None:
    """The last value of a property wins."""
    properties = {"spark.driver.extraJavaOptions": "-Dlog.level=debug"}
    (container,) = _pod(_spec(executors={"count": 2}, spark_properties=properties))["containers"]

    options = [word.split("=", 1)[1] for word in container["args"] if word.startswith("spark.driver.extraJavaOptions=")]

    assert options[-1] == "-Dlog.level=debug -XX:+ExitOnOutOfMemoryError"


def test_drivers_of_several_runners_know_their_pods() -> None:
    """The host name of a pod of an indexed Job is not its name, by which Spark finds the driver's pod."""
    (container,) = _pod(_spec(runners=2, executors={"count": 2}))["containers"]

    assert {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in container["env"]


def test_killed_pod_starts_again_and_a_failed_run_does_not() -> None:
    job = _spec()["jobTemplate"]["spec"]
    assert job["backoffLimit"] == 2
    ignored, failed = job["podFailurePolicy"]["rules"]
    assert ignored["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert failed == {
        "action": "FailJob",
        "onExitCodes": {"containerName": "maintenance", "operator": "NotIn", "values": [137]},  # codespell:ignore
    }


def test_several_runners_fail_independently() -> None:
    job = _spec(runners=4)["jobTemplate"]["spec"]
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (4, 4, "Indexed")
    assert (job["backoffLimitPerIndex"], "backoffLimit" in job) == (2, False)
    assert job["podFailurePolicy"]["rules"][1]["action"] == "FailIndex"


def test_run_reads_the_registry_of_executions() -> None:
    settings = {"secret": {"name": "registry", "key": "url"}, "address": "postgresql://db.example:5432"}
    (container,) = _pod(_spec(registry=settings))["containers"]
    assert {
        "name": "LAKEWRIGHT_REGISTRY",
        "valueFrom": {"secretKeyRef": {"name": "registry", "key": "url"}},
    } in container["env"]
    tenant, maintenance_spec = _tenant(registry=settings)
    policy = maintenance_manifests.network_policy(tenant, maintenance_spec, ["https://lakekeeper.example/catalog"])
    assert {"protocol": "TCP", "port": 5432} in [port for rule in policy["spec"]["egress"] for port in rule["ports"]]


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


def test_each_schedule_is_a_cron_job() -> None:
    tenant, maintenance = _tenant(schedules={"compaction": "0 * * * *", "orphan-files": "0 4 * * 0"})

    cron_jobs = {
        maintenance_manifests.cron_job_name(cron): (
            cron.schedule,
            " ".join(maintenance_manifests.arguments(maintenance, cron)[10:]),
        )
        for cron in maintenance.cron_jobs()
    }

    assert cron_jobs == {
        "maintenance": ("0 2 * * *", "--skip-job compaction --skip-job orphan-files"),
        "maintenance-compaction": ("0 * * * *", "--job compaction"),
        "maintenance-orphan-files": ("0 4 * * 0", "--job orphan-files"),
    }
    assert maintenance_manifests.service_account(tenant)["metadata"]["name"] == "maintenance", "one identity"


def test_all_jobs_with_own_schedules_leave_no_other_run() -> None:
    _, maintenance = _tenant(jobs=["compaction"], schedules={"compaction": "0 * * * *"})

    assert [cron.job for cron in maintenance.cron_jobs()] == ["compaction"]


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        ({"schedules": {"compact": "0 2 * * *"}}, "maintenance.schedules.compact", "compaction"),
        ({"schedules": {"compaction": "0 2 * *"}}, "maintenance.schedules.compaction", "five fields"),
        (
            {"jobs": ["retention"], "schedules": {"compaction": "0 * * * *"}},
            "maintenance.schedules.compaction",
            "expected one of `maintenance.jobs`: retention",
        ),
        ({"executors": {"memory": "512Mi"}}, "maintenance.executors", "expected at least 1Gi"),
        ({"executors": {"count": 0}}, "maintenance.executors.count", "greater than or equal to 1"),
        (
            {
                "schedules": {"snapshot-expiration": "0 * * * *"},
                "server": {"executions": {"expire_snapshots": True}},
            },
            "maintenance.server.executions.expire_snapshots",
            "`maintenance.schedules` has snapshot-expiration",
        ),
    ],
)
def test_mistakes_of_maintenance_are_refused(changes: dict[str, Any], path: str, expected: str) -> None:
    with pytest.raises(SpecError) as refusal:
        _tenant(**changes)

    (problem,) = refusal.value.problems
    assert problem.path.startswith(path)
    assert expected in problem.expected


def test_executors_are_restricted_pods_with_the_runs_identity() -> None:
    tenant, maintenance = _tenant(executors={"count": 3, "cpu": "1500m", "memory": "4Gi", "scratch": "20Gi"})
    assert maintenance.executors
    auth = TokenFileAuth(kind="token-file", path="/var/run/secrets/lakekeeper/token")
    catalog = CATALOG.model_copy(update={"auth": auth})

    template = yaml.safe_load(
        executors.pod_template(
            tenant, maintenance.executors, catalog, PodIdentity(), cluster=ClusterSettings(), token_seconds=7200
        )
    )

    pod = template["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"] == manifests.pod_security(185)
    assert container["securityContext"] == manifests.container_security()
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("maintenance", False)
    assert container["resources"]["limits"] == {"ephemeral-storage": "20Gi"}
    token = next(volume for volume in pod["volumes"] if volume["name"] == "token")
    assert token["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 7200


def test_executors_fit_their_declared_size() -> None:
    tenant, maintenance = _tenant(executors={"count": 3, "cpu": "1500m", "memory": "4Gi"})
    assert maintenance.executors

    arguments = executors.arguments(tenant, maintenance.executors, "example/jobs@sha256:0")

    properties = dict(word.split("=", 1) for word in arguments if "=" in word)
    megabytes = [int(properties[f"spark.executor.{part}"].removesuffix("m")) for part in ("memory", "memoryOverhead")]
    assert sum(megabytes) == 4096
    assert properties["spark.kubernetes.executor.limit.cores"] == "1500m"
    assert properties["spark.executor.cores"] == "1"
    assert properties["spark.network.crypto.enabled"] == "true"
    assert arguments[:2] == ["--master", "k8s://https://kubernetes.default.svc"]
    assert properties["spark.decommission.enabled"] == "true"
    assert "spark.dynamicAllocation.enabled" not in properties


def test_executors_grow_to_max_count_only() -> None:
    tenant, maintenance = _tenant(executors={"count": 2, "max_count": 10})
    assert maintenance.executors

    arguments = executors.arguments(tenant, maintenance.executors, "example/jobs@sha256:0")

    properties = dict(word.split("=", 1) for word in arguments if "=" in word)
    bounds = [properties[f"spark.dynamicAllocation.{bound}Executors"] for bound in ("min", "max")]
    assert (properties["spark.dynamicAllocation.enabled"], bounds) == ("true", ["2", "10"])
    assert sum_amounts([], maintenance).pods == 1 + 10


def test_max_count_below_count_is_refused() -> None:
    with pytest.raises(SpecError, match="max_count 1: expected at least `count`, which is 2"):
        _tenant(executors={"count": 2, "max_count": 1})


def test_run_with_executors_has_the_rights_it_needs() -> None:
    """A run without them has neither a token for the API nor a way to it."""
    tenant, spread = _tenant(executors={"count": 1})
    _, alone = _tenant()

    pods = [
        _pod(maintenance_manifests.cron_job_spec(tenant, spec, spec.cron_jobs()[0], CATALOG, "example/jobs"))
        for spec in (spread, alone)
    ]
    policies = [maintenance_manifests.network_policy(tenant, spec, [])["spec"] for spec in (spread, alone)]

    assert [pod["automountServiceAccountToken"] for pod in pods] == [True, False]
    assert [[port["port"] for port in rule["ports"]] for rule in policies[0]["egress"]] == [
        [53, 53],
        [443, 6443],
        [7079],
    ]
    assert [[port["port"] for port in rule["ports"]] for rule in policies[1]["egress"]] == [[53, 53]]
    assert "ingress" not in policies[1]
    (rule,) = executors.role(tenant)["rules"]
    assert rule["resources"] == ["pods", "configmaps"]
