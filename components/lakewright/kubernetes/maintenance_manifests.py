"""The Kubernetes objects that run a tenant's maintenance jobs at times, as pure functions."""

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
"""Between telling a run to stop and ending it: a scheduler stops its jobs within two minutes."""

_LATE_SECONDS = 600
"""How much later than its deadline a run is ended by force, and how much longer its token lives: Spark takes one token
for the whole run."""


def labels(tenant: TenantSpec) -> dict[str, str]:
    """Labels of these objects."""
    return {**manifests.labels(tenant), **_selector(tenant)}


def _selector(tenant: TenantSpec) -> dict[str, str]:
    return {"app.kubernetes.io/name": MAINTENANCE, "lakewright/tenant": tenant.name}


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec) -> Manifest:
    metadata = {"name": name, "namespace": namespace_name(tenant.name), "labels": labels(tenant)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def service_account(tenant: TenantSpec) -> Manifest:
    """The jobs' identity in the cluster. It cannot talk to the cluster's API: no token is mounted."""
    return _object("v1", "ServiceAccount", MAINTENANCE, tenant) | {"automountServiceAccountToken": False}


def config_map(tenant: TenantSpec, data: Any) -> Manifest:
    """The catalog configuration as files, `runtimes.catalog_files`; there is no secret in it."""
    return _object("v1", "ConfigMap", catalog_name(MAINTENANCE), tenant) | {"data": data}


def network_policy(tenant: TenantSpec, urls: list[str]) -> Manifest:
    """The ways that the jobs need: name service, catalog and S3 out; none in."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", MAINTENANCE, tenant) | {
        "spec": {
            "podSelector": {"matchLabels": _selector(tenant)},
            "policyTypes": ["Ingress", "Egress"],
            "egress": network.egress(urls),
        }
    }


def cron_job(tenant: TenantSpec, spec: Any) -> Manifest:
    """The jobs at their times; `spec` is `cron_job_spec`'s."""
    return _object("batch/v1", "CronJob", MAINTENANCE, tenant) | {"spec": spec}


def cron_job_spec(
    tenant: TenantSpec,
    maintenance: MaintenanceSpec,
    catalog: CatalogConfig,
    image: str,
    identity: PodIdentity = DEFAULT_IDENTITY,
) -> dict[str, Any]:
    """One run at a time, in one pod that runs as nobody in particular and holds no key of the storage's.

    `identity`: how the pod proves to the catalog who it is.
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
        # A cluster that was down for a while catches up within the hour, and otherwise waits for the next time.
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {
            "metadata": {"labels": labels(tenant)},
            "spec": {
                # A run that failed has said why; what is left is the next one's.
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
    """What `lakewright-spark maintain` is told."""
    words = ["--config", f"{CONFIG_DIR}/catalog.json", "--parallel", str(maintenance.parallel)]
    words += ["--deadline", maintenance.deadline]
    return words + [word for job in maintenance.jobs or [] for word in ("--job", job)]


def _shm(maintenance: MaintenanceSpec) -> dict[str, Any]:
    return {"medium": "Memory", "sizeLimit": maintenance.size.shm}
