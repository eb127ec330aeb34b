"""Manifests of computing units. Pure functions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import catalog_proxy, connect, jobs_identity, network, texera, trust
from lakewright.kubernetes.connect import NO_TLS, CertificateIssuer, ConnectAccess
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.runtimes import CONFIG_DIR, RUNTIMES, SCRATCH_DIR, catalog_files
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import ACTIVATOR, COMPUTING_UNITS, catalog_name, namespace_name
from lakewright.spec import ComputingUnitSpec, Size, TenantSpec
from lakewright.spec.quota import PROXY_SIZE
from lakewright.validation.quantity import canonical_memory, cpu_text, parse_millicores

Manifest = dict[str, Any]

UNIT_LABEL = {"type": "computing-unit"}
"""Label of the pods of all units, as in Texera."""
ACTIVATOR_LABELS = {"app.kubernetes.io/name": ACTIVATOR}
"""Labels that select the activator's pod."""
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


def service_account(tenant: TenantSpec, unit: ComputingUnitSpec) -> Manifest:
    """Return the unit's ServiceAccount. Pods get no token for the cluster's API."""
    return _object("v1", "ServiceAccount", unit.name, tenant, unit) | {"automountServiceAccountToken": False}


def list_config_files(
    unit: ComputingUnitSpec, catalog: CatalogConfig, cluster: ClusterSettings = DEFAULT_CLUSTER
) -> dict[str, str]:
    """Return the files of the unit's ConfigMap: the catalog configuration, and that of its proxy. No secrets."""
    if not catalog_proxy.is_used(unit, catalog.auth, cluster.texera):
        return catalog_files(catalog)
    return catalog_files(catalog_proxy.derive_unit_catalog(catalog)) | catalog_proxy.list_files(catalog, cluster.texera)


def config_map(tenant: TenantSpec, unit: ComputingUnitSpec, data: Any) -> Manifest:
    """Return the ConfigMap of the unit; `data` comes from `list_config_files`."""
    return _object("v1", "ConfigMap", catalog_name(unit.name), tenant, unit) | {"data": data}


def network_policy(
    tenant: TenantSpec, unit: ComputingUnitSpec, urls: list[str], cluster: ClusterSettings = DEFAULT_CLUSTER
) -> Manifest:
    """Return the policy that allows DNS, catalog and S3 out, and the unit's port in.

    Only the activator connects to an idle unit: it counts traffic, and stops the unit when there is none.
    """
    port = RUNTIMES[unit.runtime].port
    through_activator = [network.allow_ingress_from_pods(ACTIVATOR_LABELS, [port])]
    return _object("networking.k8s.io/v1", "NetworkPolicy", unit.name, tenant, unit) | {
        "spec": {
            "podSelector": {"matchLabels": _selector(tenant, unit)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": through_activator
            if unit.idle_after
            else network.list_ingress_rules([port], cluster.clients_namespace),
            "egress": network.list_egress_rules(urls, cluster),
        }
    }


def service(tenant: TenantSpec, unit: ComputingUnitSpec, activator_port: int | None = None) -> Manifest:
    """Return the Service of the unit, UNIT.tenant-NAME.svc. That of an idle unit leads to the activator's port."""
    settings = RUNTIMES[unit.runtime]
    port = {"name": settings.port_name, "port": settings.port, "protocol": "TCP"}
    selector = _selector(tenant, unit) if activator_port is None else {**ACTIVATOR_LABELS}
    return _object("v1", "Service", unit.name, tenant, unit) | {
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [{**port, "targetPort": activator_port or settings.port}],
        }
    }


def host_name(tenant: TenantSpec, unit: ComputingUnitSpec) -> str:
    """Return the host name of the unit's pod in the cluster's DNS, whose domain the search list of each pod adds."""
    return f"{unit.name}.{COMPUTING_UNITS}.{namespace_name(tenant.name)}.svc"


def texera_registration(tenant: TenantSpec, unit: ComputingUnitSpec) -> dict[str, str]:
    """Return the registration of a unit in Texera, by its pod's address, or for an idle unit by the activator's."""
    service_name = f"{unit.name}.{namespace_name(tenant.name)}.svc"
    return texera.registration(
        unit, service_name if unit.idle_after else host_name(tenant, unit), RUNTIMES[unit.runtime].port
    )


def connect_secret(tenant: TenantSpec, unit: ComputingUnitSpec, data: Any) -> Manifest:
    """Return the Secret with the token of Spark Connect's clients; `data` comes from `connect.encode_token_data`."""
    return _object("v1", "Secret", connect.format_token_secret_name(unit), tenant, unit) | {
        "type": "Opaque",
        "data": data,
    }


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
    cluster: ClusterSettings = DEFAULT_CLUSTER,
) -> dict[str, Any]:
    """Return the spec of a Deployment with one unprivileged pod, which writes to its scratch disks only.

    `identity` is how the pod authenticates to the catalog, `access` how clients reach Spark Connect in it. The pod has
    no key of the storage. The number of pods of an idle unit belongs to the activator: the manifest does not have it.
    """
    settings = RUNTIMES[unit.runtime]
    files = list_config_files(unit, catalog, cluster)
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    pod = {
        "metadata": {
            "labels": {**labels(tenant, unit), **UNIT_LABEL, **texera.labels(unit)},
            # Restarts pods when the ConfigMap changes.
            "annotations": {
                **cluster.pods.annotations,
                "lakewright/catalog-sha256": digest,
                **trust.pod_annotations(cluster),
            },
        },
        "spec": {
            "hostname": unit.name,
            "subdomain": COMPUTING_UNITS,
            "serviceAccountName": unit.name,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **_runtime_class(unit, cluster),
            **cluster.pods.to_pod_fields(),
            "securityContext": pod_security(settings.user),
            **_list_containers(unit, catalog, image, identity, access=access, cluster=cluster),
            "volumes": [*_volumes(unit, catalog, identity, cluster), *connect.volumes(unit, access)],
        },
    }
    return {
        **({} if unit.idle_after else {"replicas": 1}),
        # Two pods of a unit would both claim its executions.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _selector(tenant, unit)},
        "template": pod,
    }


def _runtime_class(unit: ComputingUnitSpec, cluster: ClusterSettings) -> dict[str, str]:
    runtime_class = unit.size.gpu and cluster.gpu.runtime_class
    return {"runtimeClassName": runtime_class} if runtime_class else {}


def _list_containers(
    unit: ComputingUnitSpec,
    catalog: CatalogConfig,
    image: str,
    identity: PodIdentity,
    *,
    access: ConnectAccess,
    cluster: ClusterSettings,
) -> dict[str, list[dict[str, Any]]]:
    """Return the unit's container, and the proxy of a unit that cannot send its token itself.

    The proxy is a native sidecar (Kubernetes 1.29): it starts before the unit, and ends after it, so that a unit that
    is stopped can commit until its grace period ends.
    """
    if not catalog_proxy.is_used(unit, catalog.auth, cluster.texera):
        return {"containers": [_container(unit, catalog, image, identity, access=access, cluster=cluster)]}
    common = {
        "restartPolicy": "Always",
        "resources": resources(PROXY_SIZE, cluster),
        "securityContext": container_security(),
    }
    proxy = catalog_proxy.make_container(catalog, cluster, common, jobs_identity.mounts(catalog, identity))
    own_catalog = catalog_proxy.derive_unit_catalog(catalog)
    return {
        "initContainers": [proxy],
        "containers": [_container(unit, own_catalog, image, identity, access=access, cluster=cluster)],
    }


def _container(
    unit: ComputingUnitSpec,
    catalog: CatalogConfig,
    image: str,
    identity: PodIdentity,
    *,
    access: ConnectAccess,
    cluster: ClusterSettings,
) -> dict[str, Any]:
    settings = RUNTIMES[unit.runtime]
    listening = {"tcpSocket": {"port": settings.port}}
    return {
        "name": unit.runtime,
        "image": image,
        **({"command": command} if (command := connect.command(unit, access)) else {}),
        "env": texera.variables(unit, jobs_identity.variables(unit.runtime, catalog, identity), cluster.texera),
        "ports": [{"name": settings.port_name, "containerPort": settings.port, "protocol": "TCP"}],
        "resources": resources(unit.size, cluster),
        "securityContext": container_security(),
        # Two minutes to start, then ready within 10 s and restarted after 60 s without a response.
        "startupProbe": {**listening, "periodSeconds": 5, "failureThreshold": 24},
        "readinessProbe": {**listening, "periodSeconds": 10},
        "livenessProbe": {**listening, "periodSeconds": 20, "failureThreshold": 3},
        "volumeMounts": [
            {"name": "catalog", "mountPath": CONFIG_DIR, "readOnly": True},
            *scratch_mounts(unit.size),
            *jobs_identity.mounts(catalog, identity),
            *connect.mounts(unit, access),
            *trust.mounts(catalog, cluster),
        ],
    }


def resources(size: Size, cluster: ClusterSettings) -> dict[str, Any]:
    """Return requests and limits of a container, in the API server's notation."""
    amounts = {
        "cpu": cpu_text(parse_millicores(size.cpu)),
        "memory": canonical_memory(size.memory),
        "ephemeral-storage": canonical_memory(size.scratch),
        **({cluster.gpu.resource: str(size.gpu)} if size.gpu else {}),
    }
    return {"requests": amounts, "limits": {**amounts}}


def scratch_mounts(size: Size) -> list[dict[str, Any]]:
    """Return the mounts of the folders that a container may write to."""
    return [
        {"name": "scratch", "mountPath": SCRATCH_DIR},
        {"name": "scratch", "mountPath": "/tmp", "subPath": "tmp"},  # noqa: S108 - in the pod
        *([{"name": "shm", "mountPath": "/dev/shm"}] if size.shm else []),  # noqa: S108
    ]


def scratch_volumes(size: Size) -> list[dict[str, Any]]:
    """Return the volumes of these folders, limited in size."""
    disk = {"name": "scratch", "emptyDir": {"sizeLimit": canonical_memory(size.scratch)}}
    if size.shm is None:
        return [disk]
    return [disk, {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": canonical_memory(size.shm)}}]


def _volumes(
    unit: ComputingUnitSpec, catalog: CatalogConfig, identity: PodIdentity, cluster: ClusterSettings
) -> list[dict[str, Any]]:
    return [
        {"name": "catalog", "configMap": {"name": catalog_name(unit.name)}},
        *scratch_volumes(unit.size),
        *jobs_identity.volumes(catalog, identity, _TOKEN_SECONDS),
        *trust.volumes(cluster),
        *(catalog_proxy.list_volumes() if catalog_proxy.is_used(unit, catalog.auth, cluster.texera) else []),
    ]


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
