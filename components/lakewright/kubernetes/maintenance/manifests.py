"""Manifests of a tenant's maintenance CronJobs. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import compute_limit, jobs_identity, manifests, network, trust
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.maintenance import executors
from lakewright.kubernetes.manifests import Manifest
from lakewright.kubernetes.runtimes import CONFIG_DIR, RUNTIMES
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import MAINTENANCE, catalog_name, namespace_name
from lakewright.spec import MaintenanceSpec, TenantSpec
from lakewright.spec.job_limits import compute_heap
from lakewright.spec.maintenance import CronJobSpec, parse_deadline

_KILLED = 137
"""Exit code of a container that was killed."""
_RESTARTS = 2
"""Number of times that a killed pod is started again in a run. One of its tables at a time is in work then."""
GRACE_SECONDS = 150
"""Seconds between SIGTERM and SIGKILL of a run. The scheduler stops its jobs within two minutes."""

_LATE_SECONDS = 600
"""Seconds after its deadline at which a run is killed and its token expires. Spark uses one token for the whole run."""


def labels(tenant: TenantSpec) -> dict[str, str]:
    """Return the labels of the objects."""
    return {**manifests.labels(tenant), **_selector(tenant)}


def _selector(tenant: TenantSpec) -> dict[str, str]:
    return {"app.kubernetes.io/name": MAINTENANCE, "lakewright/tenant": tenant.name}


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec) -> Manifest:
    metadata = {"name": name, "namespace": namespace_name(tenant.name), "labels": labels(tenant)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def service_account(tenant: TenantSpec) -> Manifest:
    """Return the jobs' ServiceAccount. Pods get a token for the cluster's API only to make executors."""
    return _object("v1", "ServiceAccount", MAINTENANCE, tenant) | {"automountServiceAccountToken": False}


def config_map(tenant: TenantSpec, data: Any) -> Manifest:
    """Return the ConfigMap of the catalog configuration (`runtimes.catalog_files`), which has no secrets."""
    return _object("v1", "ConfigMap", catalog_name(MAINTENANCE), tenant) | {"data": data}


def network_policy(
    tenant: TenantSpec, maintenance: MaintenanceSpec, urls: list[str], cluster: ClusterSettings = DEFAULT_CLUSTER
) -> Manifest:
    """Return the policy that allows DNS, catalog and S3 out, and nothing in; with executors, these and the API too."""
    spec: dict[str, Any] = {
        "podSelector": {"matchLabels": _selector(tenant)},
        "policyTypes": ["Ingress", "Egress"],
        "egress": network.list_egress_rules(
            [*urls, *([maintenance.registry.address] if maintenance.registry else [])], cluster
        ),
    }
    if maintenance.executors:
        spec["egress"] += executors.list_driver_egress(cluster)
        spec["ingress"] = executors.list_driver_ingress()
    return _object("networking.k8s.io/v1", "NetworkPolicy", MAINTENANCE, tenant) | {"spec": spec}


def cron_job(tenant: TenantSpec, cron: CronJobSpec, spec: Any) -> Manifest:
    """Return a CronJob; `spec` comes from `cron_job_spec`."""
    return _object("batch/v1", "CronJob", cron_job_name(cron), tenant) | {"spec": spec}


def cron_job_name(cron: CronJobSpec) -> str:
    """Return the name of a CronJob: `maintenance`, or `maintenance-JOB` for a job with a schedule of its own."""
    return f"{MAINTENANCE}-{cron.job}" if cron.job else MAINTENANCE


def compute_longest_seconds(maintenance: MaintenanceSpec) -> int:
    """Return the seconds after which a run is killed and its token expires."""
    return parse_deadline(maintenance.deadline) + _LATE_SECONDS


def cron_job_spec(
    tenant: TenantSpec,
    maintenance: MaintenanceSpec,
    cron: CronJobSpec,
    catalog: CatalogConfig,
    image: str,
    *,
    identity: PodIdentity = DEFAULT_IDENTITY,
    cluster: ClusterSettings = DEFAULT_CLUSTER,
) -> dict[str, Any]:
    """Return the spec of a CronJob with one run at a time, in one unprivileged pod, which is Spark's driver.

    `identity` is how the pod authenticates to the catalog. The pod has no key of the storage.
    """
    longest = compute_longest_seconds(maintenance)
    user = RUNTIMES["spark"].user
    pod = {
        "serviceAccountName": MAINTENANCE,
        # A driver with executors makes their pods by the cluster's API.
        "automountServiceAccountToken": maintenance.executors is not None,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        **compute_limit.limit_pod_time(tenant, longest),
        **cluster.pods.to_pod_fields(),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": manifests.pod_security(user),
        "containers": [_container(tenant, maintenance, cron, catalog, image, identity=identity, cluster=cluster)],
        "volumes": [
            {"name": "catalog", "configMap": {"name": catalog_name(MAINTENANCE)}},
            *manifests.scratch_volumes(cron.size),
            *jobs_identity.volumes(catalog, identity, longest),
            *trust.volumes(cluster),
            *(executors.driver_volumes() if maintenance.executors else []),
        ],
    }
    repetition = build_repetition(maintenance.runners, MAINTENANCE)
    metadata = {"labels": dict(labels(tenant)), **cluster.pods.to_metadata_fields()}
    return build_schedule(cron.schedule, pod, metadata, seconds=longest, repetition=repetition)


def build_schedule(
    schedule: str, pod: Manifest, metadata: Mapping[str, Any], *, seconds: int, repetition: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the spec of a CronJob with one run at a time.

    Args:
        schedule: Cron schedule in UTC.
        pod: Spec of the pods.
        metadata: Labels of jobs and pods, and annotations of pods.
        seconds: Seconds after which a run is killed.
        repetition: Which pods are started again, of `build_repetition`.
    """
    return {
        "schedule": schedule,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        # After an outage, a missed run starts within an hour; later it is skipped.
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {
            "metadata": {"labels": dict(metadata["labels"])},
            "spec": {
                **repetition,
                "activeDeadlineSeconds": seconds,
                "template": {"metadata": dict(metadata), "spec": pod},
            },
        },
    }


def build_repetition(runners: int, container: str) -> dict[str, Any]:
    """Return which pods of a run are started again: killed pods, for example for lack of memory.

    Another failed run is not repeated; the next run continues. Several runners fail independently of each other.
    """
    other_failure = {"containerName": container, "operator": "NotIn", "values": [_KILLED]}  # codespell:ignore
    rules: list[dict[str, Any]] = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]
    if runners == 1:
        rules.append({"action": "FailJob", "onExitCodes": other_failure})
        return {"backoffLimit": _RESTARTS, "podFailurePolicy": {"rules": rules}}
    rules.append({"action": "FailIndex", "onExitCodes": other_failure})
    return {
        "completionMode": "Indexed",
        "completions": runners,
        "parallelism": runners,
        "backoffLimitPerIndex": _RESTARTS,
        "podFailurePolicy": {"rules": rules},
    }


def _container(
    tenant: TenantSpec,
    maintenance: MaintenanceSpec,
    cron: CronJobSpec,
    catalog: CatalogConfig,
    image: str,
    *,
    identity: PodIdentity,
    cluster: ClusterSettings,
) -> dict[str, Any]:
    spread = maintenance.executors
    command_line = arguments(maintenance, cron)
    if spread:
        java_options = maintenance.spark_properties.get(executors.DRIVER_JVM_OPTIONS, "")
        command_line += executors.arguments(tenant, spread, image, java_options)
    return {
        "name": MAINTENANCE,
        "image": image,
        "command": ["lakewright-spark", "maintain"],
        "args": command_line,
        "env": jobs_identity.variables("spark", catalog, identity)
        + _list_registry_variables(maintenance)
        + (executors.driver_variables() if spread else []),
        "resources": manifests.resources(cron.size, cluster),
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            {"name": "catalog", "mountPath": CONFIG_DIR, "readOnly": True},
            *manifests.scratch_mounts(cron.size),
            *jobs_identity.mounts(catalog, identity),
            *trust.mounts(catalog, cluster),
            *(executors.driver_mounts() if spread else []),
        ],
    }


def _list_registry_variables(maintenance: MaintenanceSpec) -> list[dict[str, Any]]:
    """Return the variable with the URL of the registry of executions, from its Secret."""
    if maintenance.registry is None:
        return []
    secret = maintenance.registry.secret
    source = {"secretKeyRef": {"name": secret.name, "key": secret.key}}
    return [{"name": "LAKEWRIGHT_REGISTRY", "valueFrom": source}]


def arguments(maintenance: MaintenanceSpec, cron: CronJobSpec) -> list[str]:
    """Return the arguments of `lakewright-spark maintain`."""
    options = ["--config", f"{CONFIG_DIR}/catalog.json", "--parallel", str(maintenance.parallel)]
    options += ["--deadline", maintenance.deadline, "--task-timeout", maintenance.task_timeout]
    if maintenance.budget:
        options += ["--budget", maintenance.budget]
    properties = {"spark.driver.memory": compute_heap(cron.size), **maintenance.spark_properties}
    options += [word for name, value in properties.items() for word in ("--conf", f"{name}={value}")]
    options += [word for job in cron.jobs for word in ("--job", job)]
    return options + [word for job in cron.skipped for word in ("--skip-job", job)]
