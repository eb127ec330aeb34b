"""Manifests of a tenant's maintenance CronJob. Pure functions."""

from __future__ import annotations

from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import jobs_identity, manifests, network
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.manifests import Manifest
from lakewright.kubernetes.runtimes import CONFIG_DIR, RUNTIMES, SCRATCH_DIR
from lakewright.names.object_names import MAINTENANCE, catalog_name, namespace_name
from lakewright.spec import MaintenanceSpec, TenantSpec
from lakewright.spec.maintenance import seconds_of

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
    """Return the jobs' ServiceAccount. Pods get no token for the cluster's API."""
    return _object("v1", "ServiceAccount", MAINTENANCE, tenant) | {"automountServiceAccountToken": False}


def config_map(tenant: TenantSpec, data: Any) -> Manifest:
    """Return the ConfigMap of the catalog configuration (`runtimes.catalog_files`), which has no secrets."""
    return _object("v1", "ConfigMap", catalog_name(MAINTENANCE), tenant) | {"data": data}


def network_policy(tenant: TenantSpec, urls: list[str]) -> Manifest:
    """Return the policy that allows DNS, catalog and S3 out, and nothing in."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", MAINTENANCE, tenant) | {
        "spec": {
            "podSelector": {"matchLabels": _selector(tenant)},
            "policyTypes": ["Ingress", "Egress"],
            "egress": network.egress(urls),
        }
    }


def cron_job(tenant: TenantSpec, spec: Any) -> Manifest:
    """Return the CronJob; `spec` comes from `cron_job_spec`."""
    return _object("batch/v1", "CronJob", MAINTENANCE, tenant) | {"spec": spec}


def cron_job_spec(
    tenant: TenantSpec,
    maintenance: MaintenanceSpec,
    catalog: CatalogConfig,
    image: str,
    identity: PodIdentity = DEFAULT_IDENTITY,
) -> dict[str, Any]:
    """Return the spec of a CronJob with one run at a time, in one unprivileged pod.

    `identity` is how the pod authenticates to the catalog. The pod has no key of the storage.
    """
    deadline = seconds_of(maintenance.deadline)
    user = RUNTIMES["spark"].user
    pod = {
        "serviceAccountName": MAINTENANCE,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": manifests.pod_security(user),
        "containers": [_container(maintenance, catalog, image, identity)],
        "volumes": [
            {"name": "catalog", "configMap": {"name": catalog_name(MAINTENANCE)}},
            {"name": "scratch", "emptyDir": {"sizeLimit": maintenance.size.scratch}},
            *([{"name": "shm", "emptyDir": _shm(maintenance)}] if maintenance.size.shm else []),
            *jobs_identity.volumes(catalog, identity, deadline + _LATE_SECONDS),
        ],
    }
    return {
        "schedule": maintenance.schedule,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        # After an outage, a missed run starts within an hour; later it is skipped.
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {
            "metadata": {"labels": labels(tenant)},
            "spec": {
                # A failed run is not repeated; the next run continues.
                "backoffLimit": 0,
                "activeDeadlineSeconds": deadline + _LATE_SECONDS,
                "template": {"metadata": {"labels": labels(tenant)}, "spec": pod},
            },
        },
    }


def _container(
    maintenance: MaintenanceSpec, catalog: CatalogConfig, image: str, identity: PodIdentity
) -> dict[str, Any]:
    size = maintenance.size
    amounts = {"cpu": size.cpu, "memory": size.memory, "ephemeral-storage": size.scratch}
    return {
        "name": MAINTENANCE,
        "image": image,
        "command": ["lakewright-spark", "maintain"],
        "args": arguments(maintenance),
        "env": jobs_identity.variables("spark", catalog, identity),
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            {"name": "catalog", "mountPath": CONFIG_DIR, "readOnly": True},
            {"name": "scratch", "mountPath": SCRATCH_DIR},
            {"name": "scratch", "mountPath": "/tmp", "subPath": "tmp"},  # noqa: S108 - in the pod
            *([{"name": "shm", "mountPath": "/dev/shm"}] if size.shm else []),  # noqa: S108
            *jobs_identity.mounts(catalog, identity),
        ],
    }


def arguments(maintenance: MaintenanceSpec) -> list[str]:
    """Return the arguments of `lakewright-spark maintain`."""
    words = ["--config", f"{CONFIG_DIR}/catalog.json", "--parallel", str(maintenance.parallel)]
    words += ["--deadline", maintenance.deadline]
    return words + [word for job in maintenance.jobs or [] for word in ("--job", job)]


def _shm(maintenance: MaintenanceSpec) -> dict[str, Any]:
    return {"medium": "Memory", "sizeLimit": maintenance.size.shm}
