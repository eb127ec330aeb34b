"""Manifests of a tenant's namespace and computing units. Pure functions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import connect, jobs_identity, network
from lakewright.kubernetes.connect import NO_TLS, CertificateIssuer, ConnectAccess
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.runtimes import CONFIG_DIR, RUNTIMES, SCRATCH_DIR, catalog_files
from lakewright.names.object_names import DENY_ALL, catalog_name, namespace_name
from lakewright.spec import ComputingUnitSpec, TenantSpec

Manifest = dict[str, Any]

_TOKEN_SECONDS = 3600


def labels(tenant: TenantSpec, unit: ComputingUnitSpec | None = None) -> dict[str, str]:
    """Return the labels of a tenant's objects, or of a unit's."""
    common = {**tenant.labels, "app.kubernetes.io/managed-by": "lakewright", "lakewright/tenant": tenant.name}
    return {**common, "app.kubernetes.io/name": unit.name, "lakewright/runtime": unit.runtime} if unit else common


def _selector(tenant: TenantSpec, unit: ComputingUnitSpec) -> dict[str, str]:
    # The selector of a Deployment is immutable, so it has no labels of users.
    return {"app.kubernetes.io/name": unit.name, "lakewright/tenant": tenant.name}


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    metadata = {"name": name, "namespace": namespace_name(tenant.name), "labels": labels(tenant, unit)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def namespace(tenant: TenantSpec) -> Manifest:
    """Return the tenant's namespace, which admits restricted pods only."""
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
    """Return the policy that denies all traffic that no other policy allows."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": DENY_ALL, "namespace": namespace_name(tenant.name), "labels": labels(tenant)},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }


def service_account(tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    """Return the unit's ServiceAccount. Pods get no token for the cluster's API."""
    return _object("v1", "ServiceAccount", unit.name, tenant, unit) | {"automountServiceAccountToken": False}


def config_map(tenant: TenantSpec, unit: ComputingUnitSpec, data: Any) -> Manifest:
    """Return the ConfigMap of the catalog configuration (`runtimes.catalog_files`), which has no secrets."""
    return _object("v1", "ConfigMap", catalog_name(unit.name), tenant, unit) | {"data": data}


def network_policy(tenant: TenantSpec, unit: ComputingUnitSpec, urls: list[str], clients_namespace: str) -> Manifest:
    """Return the policy that allows DNS, catalog and S3 out, and the unit's port in."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", unit.name, tenant, unit) | {
        "spec": {
            "podSelector": {"matchLabels": _selector(tenant, unit)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": network.ingress(RUNTIMES[unit.runtime].port, clients_namespace),
            "egress": network.egress(urls),
        }
    }


def service(tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    """Return the Service of the unit, UNIT.tenant-NAME.svc."""
    settings = RUNTIMES[unit.runtime]
    port = {"name": settings.port_name, "port": settings.port, "targetPort": settings.port, "protocol": "TCP"}
    return _object("v1", "Service", unit.name, tenant, unit) | {
        "spec": {"type": "ClusterIP", "selector": _selector(tenant, unit), "ports": [port]}
    }


def connect_secret(tenant: TenantSpec, unit: ComputingUnitSpec, data: Any) -> Manifest:
    """Return the Secret with the token of Spark Connect's clients; `data` comes from `connect.token_data`."""
    return _object("v1", "Secret", connect.token_name(unit), tenant, unit) | {"type": "Opaque", "data": data}


def certificate(tenant: TenantSpec, unit: ComputingUnitSpec, issuer: CertificateIssuer) -> Manifest:
    """Return cert-manager's Certificate of the unit."""
    spec = connect.certificate_spec(tenant.name, unit, issuer)
    return _object("cert-manager.io/v1", "Certificate", spec["secretName"], tenant, unit) | {"spec": spec}


def deployment(tenant: TenantSpec, unit: ComputingUnitSpec, spec: Any) -> Manifest:
    """Return the Deployment of the unit; `spec` comes from `deployment_spec`."""
    return _object("apps/v1", "Deployment", unit.name, tenant, unit) | {"spec": spec}


def deployment_spec(
    tenant: TenantSpec,
    unit: ComputingUnitSpec,
    catalog: CatalogConfig,
    image: str,
    identity: PodIdentity = DEFAULT_IDENTITY,
    *,
    access: ConnectAccess = NO_TLS,
) -> dict[str, Any]:
    """Return the spec of a Deployment with one unprivileged pod, which writes to its scratch disk only.

    `identity` is how the pod authenticates to the catalog, `access` how clients reach Spark Connect in it. The pod has
    no key of the storage.
    """
    settings = RUNTIMES[unit.runtime]
    digest = hashlib.sha256(json.dumps(catalog_files(catalog), sort_keys=True).encode()).hexdigest()
    pod = {
        "metadata": {
            "labels": labels(tenant, unit),
            # Restarts pods when the ConfigMap changes.
            "annotations": {"lakewright/catalog-sha256": digest},
        },
        "spec": {
            "serviceAccountName": unit.name,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod_security(settings.user),
            "containers": [_container(unit, catalog, image, identity, access)],
            "volumes": [*_volumes(unit, catalog, identity), *connect.volumes(unit, access)],
        },
    }
    return {
        "replicas": 1,
        # Two pods of one unit would both claim its executions.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _selector(tenant, unit)},
        "template": pod,
    }


def _container(
    unit: ComputingUnitSpec, catalog: CatalogConfig, image: str, identity: PodIdentity, access: ConnectAccess
) -> dict[str, Any]:
    settings = RUNTIMES[unit.runtime]
    listening = {"tcpSocket": {"port": settings.port}}
    amounts = {"cpu": unit.size.cpu, "memory": unit.size.memory, "ephemeral-storage": unit.size.scratch}
    return {
        "name": unit.runtime,
        "image": image,
        **({"command": command} if (command := connect.command(unit, access)) else {}),
        "env": jobs_identity.variables(unit.runtime, catalog, identity),
        "ports": [{"name": settings.port_name, "containerPort": settings.port, "protocol": "TCP"}],
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
            *connect.mounts(unit, access),
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
    """Return the security context that the namespace requires of pods."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """Return the security context that the namespace requires of containers, with a read-only root file system."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
