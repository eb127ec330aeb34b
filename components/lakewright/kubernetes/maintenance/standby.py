"""Manifests of the CronJobs that copy a warehouse to its standby and check the lag. Pure functions."""

from __future__ import annotations

from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import S3Keys

from lakewright.kubernetes import compute_limit, jobs_identity, manifests, network, trust
from lakewright.kubernetes.jobs_identity import PodIdentity
from lakewright.kubernetes.maintenance.manifests import GRACE_SECONDS, build_repetition, build_schedule
from lakewright.kubernetes.manifests import Manifest
from lakewright.kubernetes.runtimes import CONFIG_DIR, RUNTIMES
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.names.object_names import (
    MAINTENANCE,
    STANDBY,
    format_lag_check,
    format_standby,
    format_standby_config,
    namespace_name,
)
from lakewright.spec import TenantSpec
from lakewright.spec.standby import StandbySpec, parse_deadline

SOURCE_FILE = "main.json"
_STANDBY_DIR, _STANDBY_FILE = "/etc/lakewright-standby", "standby.json"
_KEYS = {"SOURCE_ACCESS_KEY_ID": "access_key_id", "SOURCE_SECRET_ACCESS_KEY": "secret_access_key"}
_CONTAINER = "standby"
_LATE_SECONDS = 600
"""Seconds after its deadline at which a token expires."""


def _select(tenant: TenantSpec) -> dict[str, str]:
    return {"app.kubernetes.io/name": STANDBY, "lakewright/tenant": tenant.name}


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec) -> Manifest:
    labels = {**manifests.labels(tenant), **_select(tenant)}
    metadata = {"name": name, "namespace": namespace_name(tenant.name), "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def build_source(catalog: CatalogConfig, warehouse: str) -> CatalogConfig:
    """Return the configuration of the source: the warehouse, with references to the key that reads its files."""
    access_key_id, secret_access_key = (f"env:{name}" for name in _KEYS)
    keys = S3Keys(access_key_id=access_key_id, secret_access_key=secret_access_key)
    source = catalog.warehouse(warehouse).model_copy(update={"s3_keys": keys})
    return catalog.model_copy(update={"warehouses": [source]})


def config_map(tenant: TenantSpec, warehouse: str, data: Any) -> Manifest:
    """Return the ConfigMap of the source's configuration; `data` has the file of `build_source`."""
    return _object("v1", "ConfigMap", format_standby_config(warehouse), tenant) | {"data": data}


def network_policy(tenant: TenantSpec, urls: list[str], cluster: ClusterSettings) -> Manifest:
    """Return the policy of the pods: nothing in; out DNS, the catalogs and object stores of both sides."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", STANDBY, tenant) | {
        "spec": {
            "podSelector": {"matchLabels": _select(tenant)},
            "policyTypes": ["Ingress", "Egress"],
            "egress": network.list_egress_rules(urls, cluster),
        }
    }


def copy_job(tenant: TenantSpec, warehouse: str, spec: Any) -> Manifest:
    """Return the CronJob of the copies; `spec` comes from `cron_job_spec`."""
    return _object("batch/v1", "CronJob", format_standby(warehouse), tenant) | {"spec": spec}


def lag_check(tenant: TenantSpec, warehouse: str, spec: Any) -> Manifest:
    """Return the CronJob of the check; `spec` comes from `cron_job_spec`."""
    return _object("batch/v1", "CronJob", format_lag_check(warehouse), tenant) | {"spec": spec}


def copy_arguments(standby: StandbySpec) -> list[str]:
    """Return the arguments of `lakewright-spark` that copy."""
    return ["standby", "copy", *_select_tables(standby), "--verify", standby.verify]


def lag_arguments(standby: StandbySpec, max_lag: str) -> list[str]:
    """Return the arguments of `lakewright-spark` that check the lag."""
    return ["standby", "status", *_select_tables(standby), "--max-lag", max_lag]


def _select_tables(standby: StandbySpec) -> list[str]:
    options = ["--from", f"{CONFIG_DIR}/{SOURCE_FILE}", "--to", f"{_STANDBY_DIR}/{_STANDBY_FILE}"]
    if standby.warehouse:
        options += ["--to-warehouse", standby.warehouse]
    return options + [word for pattern in standby.tables for word in ("--table", pattern)]


def cron_job_spec(
    tenant: TenantSpec,
    warehouse: str,
    standby: StandbySpec,
    catalog: CatalogConfig,
    image: str,
    *,
    schedule: str,
    arguments: list[str],
    identity: PodIdentity,
    cluster: ClusterSettings,
) -> dict[str, Any]:
    """Return the spec of a CronJob with one unprivileged pod, which has the identity of the maintenance jobs."""
    seconds = parse_deadline(standby.deadline)
    config = standby.config
    pod = {
        "serviceAccountName": MAINTENANCE,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        **compute_limit.limit_pod_time(tenant, seconds),
        **cluster.pods.to_pod_fields(),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": manifests.pod_security(RUNTIMES["spark"].user),
        "containers": [_container(standby, catalog, image, arguments, identity=identity, cluster=cluster)],
        "volumes": [
            {"name": "source", "configMap": {"name": format_standby_config(warehouse)}},
            {
                "name": "standby",
                "configMap": {"name": config.name, "items": [{"key": config.key, "path": _STANDBY_FILE}]},
            },
            *manifests.scratch_volumes(standby.size),
            *jobs_identity.volumes(catalog, identity, seconds + _LATE_SECONDS),
            *trust.volumes(cluster),
        ],
    }
    labels = {**manifests.labels(tenant), **_select(tenant)}
    metadata = {"labels": labels, **cluster.pods.to_metadata_fields()}
    return build_schedule(schedule, pod, metadata, seconds=seconds, repetition=build_repetition(1, _CONTAINER))


def _container(
    standby: StandbySpec,
    catalog: CatalogConfig,
    image: str,
    arguments: list[str],
    *,
    identity: PodIdentity,
    cluster: ClusterSettings,
) -> dict[str, Any]:
    secret = standby.secret
    keys = {name: str(getattr(secret, field)) for name, field in _KEYS.items()} | dict(sorted(secret.variables.items()))
    return {
        "name": _CONTAINER,
        "image": image,
        "command": ["lakewright-spark"],
        "args": arguments,
        "env": [
            *jobs_identity.variables("spark", catalog, identity),
            *(
                {"name": name, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": key}}}
                for name, key in keys.items()
            ),
        ],
        "resources": manifests.resources(standby.size, cluster),
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            {"name": "source", "mountPath": CONFIG_DIR, "readOnly": True},
            {"name": "standby", "mountPath": _STANDBY_DIR, "readOnly": True},
            *manifests.scratch_mounts(standby.size),
            *jobs_identity.mounts(catalog, identity),
            *trust.mounts(catalog, cluster),
        ],
    }
