"""The Kubernetes objects of a tenant and its computing units, as pure functions of what they are for."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import jobs_identity, network
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.runtimes import CONFIG_DIR, RUNTIMES, SCRATCH_DIR, catalog_files
from lakewright.names.object_names import DENY_ALL, catalog_name, namespace_name
from lakewright.spec import ComputingUnitSpec, TenantSpec

Manifest = dict[str, Any]

_TOKEN_SECONDS = 3600


def labels(tenant: TenantSpec, unit: ComputingUnitSpec | None = None) -> dict[str, str]:
    """Labels of every object; with a unit, those of its own objects."""
    common = {**tenant.labels, "app.kubernetes.io/managed-by": "lakewright", "lakewright/tenant": tenant.name}
    return {**common, "app.kubernetes.io/name": unit.name, "lakewright/runtime": unit.runtime} if unit else common


def _selector(tenant: TenantSpec, unit: ComputingUnitSpec) -> dict[str, str]:
    # A Deployment's selector never changes, so labels that people choose are not in it.
    return {"app.kubernetes.io/name": unit.name, "lakewright/tenant": tenant.name}


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    metadata = {"name": name, "namespace": namespace_name(tenant.name), "labels": labels(tenant, unit)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def namespace(tenant: TenantSpec) -> Manifest:
    """The tenant's namespace, in which the cluster refuses pods that are not restricted."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace_name(tenant.name),
            "labels": {**labels(tenant), **restricted},
            "annotations": {"lakewright/owner": tenant.owner},
        },
    }


def deny_all(tenant: TenantSpec) -> Manifest:
    """No pod of the namespace reaches anything, or is reached, unless another policy says so."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": DENY_ALL, "namespace": namespace_name(tenant.name), "labels": labels(tenant)},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }


def service_account(tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    """The unit's identity in the cluster. It cannot talk to the cluster's API: no token is mounted."""
    return _object("v1", "ServiceAccount", unit.name, tenant, unit) | {"automountServiceAccountToken": False}


def config_map(tenant: TenantSpec, unit: ComputingUnitSpec, data: Any) -> Manifest:
    """The catalog configuration as files, `runtimes.catalog_files`; there is no secret in it."""
    return _object("v1", "ConfigMap", catalog_name(unit.name), tenant, unit) | {"data": data}


def network_policy(tenant: TenantSpec, unit: ComputingUnitSpec, urls: list[str], clients_namespace: str) -> Manifest:
    """The ways that the unit needs: name service, catalog and S3 out; its own port in."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", unit.name, tenant, unit) | {
        "spec": {
            "podSelector": {"matchLabels": _selector(tenant, unit)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": network.ingress(RUNTIMES[unit.runtime].port, clients_namespace),
            "egress": network.egress(urls),
        }
    }


def service(tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    """A stable name for the unit: UNIT.tenant-NAME.svc."""
    facts = RUNTIMES[unit.runtime]
    port = {"name": facts.port_name, "port": facts.port, "targetPort": facts.port, "protocol": "TCP"}
    return _object("v1", "Service", unit.name, tenant, unit) | {
        "spec": {"type": "ClusterIP", "selector": _selector(tenant, unit), "ports": [port]}
    }


def deployment(tenant: TenantSpec, unit: ComputingUnitSpec, spec: Any) -> Manifest:
    """The unit itself; `spec` is `deployment_spec`'s."""
    return _object("apps/v1", "Deployment", unit.name, tenant, unit) | {"spec": spec}


def deployment_spec(
    tenant: TenantSpec,
    unit: ComputingUnitSpec,
    catalog: CatalogConfig,
    image: str,
    identity: PodIdentity = DEFAULT_IDENTITY,
) -> dict[str, Any]:
    """One pod that runs as nobody in particular, writes to its scratch disk alone and holds no key of the storage's.

    `identity`: how the pod proves to the catalog who it is.
    """
    facts = RUNTIMES[unit.runtime]
    digest = hashlib.sha256(json.dumps(catalog_files(catalog), sort_keys=True).encode()).hexdigest()
    pod = {
        "metadata": {
            "labels": labels(tenant, unit),
            # Pods do not notice a changed ConfigMap by themselves.
            "annotations": {"lakewright/catalog-sha256": digest},
        },
        "spec": {
            "serviceAccountName": unit.name,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod_security(facts.user),
            "containers": [_container(unit, catalog, image, identity)],
            "volumes": _volumes(unit, catalog, identity),
        },
    }
    return {
        "replicas": 1,
        # Two pods of one unit would both think that they own its executions.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _selector(tenant, unit)},
        "template": pod,
    }


def _container(unit: ComputingUnitSpec, catalog: CatalogConfig, image: str, identity: PodIdentity) -> dict[str, Any]:
    facts = RUNTIMES[unit.runtime]
    listening = {"tcpSocket": {"port": facts.port}}
    amounts = {"cpu": unit.size.cpu, "memory": unit.size.memory, "ephemeral-storage": unit.size.scratch}
    return {
        "name": unit.runtime,
        "image": image,
        **({"command": list(facts.command)} if facts.command else {}),
        "env": jobs_identity.variables(unit.runtime, catalog, identity),
        "ports": [{"name": facts.port_name, "containerPort": facts.port, "protocol": "TCP"}],
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": container_security(),
        # Two minutes to start, then ready within 10 s and restarted after 60 s without an answer.
        "startupProbe": {**listening, "periodSeconds": 5, "failureThreshold": 24},
        "readinessProbe": {**listening, "periodSeconds": 10},
        "livenessProbe": {**listening, "periodSeconds": 20, "failureThreshold": 3},
        "volumeMounts": [
            {"name": "catalog", "mountPath": CONFIG_DIR, "readOnly": True},
            {"name": "scratch", "mountPath": SCRATCH_DIR},
            {"name": "scratch", "mountPath": "/tmp", "subPath": "tmp"},  # noqa: S108 - in the pod
            *([{"name": "shm", "mountPath": "/dev/shm"}] if unit.size.shm else []),  # noqa: S108
            *jobs_identity.mounts(catalog, identity),
        ],
    }


def _volumes(unit: ComputingUnitSpec, catalog: CatalogConfig, identity: PodIdentity) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "catalog", "configMap": {"name": catalog_name(unit.name)}},
        {"name": "scratch", "emptyDir": {"sizeLimit": unit.size.scratch}},
    ]
    if unit.size.shm:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": unit.size.shm}})
    return volumes + jobs_identity.volumes(catalog, identity, _TOKEN_SECONDS)


def pod_security(user: int) -> dict[str, Any]:
    """What the namespace demands of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """What the namespace demands of a container, and a root file system that nobody writes to."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
