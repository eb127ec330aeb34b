"""Manifests of the activator of a tenant's idle units. Pure functions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lakewright.kubernetes import manifests, network
from lakewright.kubernetes.manifests import ACTIVATOR_LABELS, Manifest
from lakewright.kubernetes.runtimes import RUNTIMES
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import ACTIVATOR, namespace_name
from lakewright.spec import ComputingUnitSpec, TenantSpec
from lakewright.spec.computing_unit import idle_seconds
from lakewright.spec.quota import ACTIVATOR_SIZE

HEALTH_PORT = 8079
"""Port for probes: a probe of a unit's port would count as traffic."""
_PORTS = range(20000, 30000)
_CONFIG_DIR, _CONFIG = "/etc/lakewright", "activator.json"
_RBAC = "rbac.authorization.k8s.io"


def ports(tenant: TenantSpec) -> dict[str, int]:
    """Return the activator's port for each idle unit, sorted by name.

    A port is a hash of the name: other units change it only if their names have the same hash.
    """
    names_by_port: dict[int, str] = {}
    for name in [unit.name for unit in _sort_units(tenant) if unit.idle_after]:
        start = int.from_bytes(hashlib.sha256(name.encode()).digest()) % len(_PORTS)
        port = next(port for port in (*_PORTS[start:], *_PORTS[:start]) if port not in names_by_port)
        names_by_port[port] = name
    return {name: port for port, name in names_by_port.items()}


def _sort_units(tenant: TenantSpec) -> list[ComputingUnitSpec]:
    return sorted(tenant.computing_units, key=lambda unit: unit.name)


def configuration(tenant: TenantSpec) -> str:
    """Return the configuration of `lakewright-spark activate` as JSON."""
    port_of = ports(tenant)
    units = [
        {
            "deployment": unit.name,
            "listen": port_of[unit.name],
            "host": manifests.host_name(tenant, unit),
            "port": RUNTIMES[unit.runtime].port,
            "idle_seconds": idle_seconds(unit.idle_after),
            # A browser with an open workflow may send nothing for hours; a Connect session may be left open for days.
            "open_connections_count": unit.runtime == "texera",
        }
        for unit in _sort_units(tenant)
        if unit.idle_after
    ]
    whole = {"namespace": namespace_name(tenant.name), "health_port": HEALTH_PORT, "units": units}
    return json.dumps(whole, indent=2)


def service_account(tenant: TenantSpec) -> Manifest:
    """Return the activator's ServiceAccount."""
    return _object("v1", "ServiceAccount", tenant) | {"automountServiceAccountToken": False}


def role(tenant: TenantSpec) -> Manifest:
    """Return the rights of the activator: to read and change the number of pods of the idle units."""
    rule = {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "resourceNames": list(ports(tenant)),
        "verbs": ["get", "patch"],
    }
    return _object(f"{_RBAC}/v1", "Role", tenant) | {"rules": [rule]}


def role_binding(tenant: TenantSpec) -> Manifest:
    """Return the binding of the role to the activator."""
    subject = {"kind": "ServiceAccount", "name": ACTIVATOR, "namespace": namespace_name(tenant.name)}
    return _object(f"{_RBAC}/v1", "RoleBinding", tenant) | {
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": ACTIVATOR},
        "subjects": [subject],
    }


def config_map(tenant: TenantSpec) -> Manifest:
    """Return the ConfigMap of the configuration."""
    return _object("v1", "ConfigMap", tenant) | {"data": {_CONFIG: configuration(tenant)}}


def network_policy(tenant: TenantSpec, cluster: ClusterSettings = DEFAULT_CLUSTER) -> Manifest:
    """Return the policy that allows clients in, and DNS, the API server and the units out."""
    targets = sorted({RUNTIMES[unit.runtime].port for unit in tenant.computing_units if unit.idle_after})
    return _object("networking.k8s.io/v1", "NetworkPolicy", tenant) | {
        "spec": {
            "podSelector": {"matchLabels": {**ACTIVATOR_LABELS}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": network.list_ingress_rules(ports(tenant).values(), cluster.clients_namespace),
            "egress": [
                *network.allow_dns(cluster.dns),
                network.allow_api_server(cluster),
                network.allow_egress_to_pods(manifests.UNIT_LABEL, targets),
            ],
        }
    }


def deployment(tenant: TenantSpec, image: str, cluster: ClusterSettings = DEFAULT_CLUSTER) -> Manifest:
    """Return the Deployment of the activator, which uses the image of the maintenance jobs."""
    digest = hashlib.sha256(configuration(tenant).encode()).hexdigest()
    healthy = {"tcpSocket": {"port": HEALTH_PORT}}
    container: dict[str, Any] = {
        "name": ACTIVATOR,
        "image": image,
        "command": ["lakewright-spark", "activate"],
        "args": ["--config", f"{_CONFIG_DIR}/{_CONFIG}"],
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - in the pod
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            *({"containerPort": port, "protocol": "TCP"} for port in ports(tenant).values()),
        ],
        "resources": manifests.resources(ACTIVATOR_SIZE, DEFAULT_CLUSTER),
        "securityContext": manifests.container_security(),
        "readinessProbe": {**healthy, "periodSeconds": 5},
        "livenessProbe": {**healthy, "periodSeconds": 20, "failureThreshold": 3},
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_DIR, "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - in the pod
        ],
    }
    spec = {
        "replicas": 1,
        # Each of two activators would see a part of the traffic, and could stop a unit that the other activator serves.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {**ACTIVATOR_LABELS}},
        "template": {
            "metadata": {
                "labels": _labels(tenant),
                "annotations": {**cluster.pods.annotations, "lakewright/config-sha256": digest},
            },
            "spec": {
                "serviceAccountName": ACTIVATOR,
                "automountServiceAccountToken": True,
                "enableServiceLinks": False,
                **cluster.pods.to_pod_fields(),
                "securityContext": manifests.pod_security(RUNTIMES["spark"].user),
                "containers": [container],
                "volumes": [
                    {"name": "config", "configMap": {"name": ACTIVATOR}},
                    {"name": "scratch", "emptyDir": {"sizeLimit": ACTIVATOR_SIZE.scratch}},
                ],
            },
        },
    }
    return _object("apps/v1", "Deployment", tenant) | {"spec": spec}


def _labels(tenant: TenantSpec) -> dict[str, str]:
    return {**manifests.labels(tenant), **ACTIVATOR_LABELS}


def _object(api_version: str, kind: str, tenant: TenantSpec) -> Manifest:
    metadata = {"name": ACTIVATOR, "namespace": namespace_name(tenant.name), "labels": _labels(tenant)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
