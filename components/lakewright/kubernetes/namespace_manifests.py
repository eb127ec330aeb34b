"""Manifests of a tenant's namespace: isolation, quota, defaults of containers, host names. Pure functions."""

from __future__ import annotations

from typing import Any

from lakewright.kubernetes import compute_limit, trust
from lakewright.kubernetes.manifests import UNIT_LABEL, Manifest, labels
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import COMPUTING_UNITS, DENY_ALL, TRUST, namespace_name
from lakewright.spec import TenantSpec
from lakewright.spec.quota import Amounts, count_amounts, effective, sum_amounts
from lakewright.spec.size import Size

DEFAULT_CONTAINER = Size(cpu="250m", memory="512Mi", scratch="1Gi")
"""Resources of containers that declare none; without any, the quota would refuse their pods."""

_STANDARD = "pod-security.kubernetes.io"


def namespace(tenant: TenantSpec) -> Manifest:
    """Return the tenant's namespace, which admits restricted pods only."""
    restricted = {f"{_STANDARD}/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace_name(tenant.name),
            "labels": {**labels(tenant), **restricted},
            "annotations": {"lakewright/owner": tenant.owner, **compute_limit.annotate_namespace(tenant)},
        },
    }


def deny_all(tenant: TenantSpec) -> Manifest:
    """Return the policy that denies all traffic that no other policy allows."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", DENY_ALL, tenant) | {
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    }


def compute_quota(tenant: TenantSpec, cluster: ClusterSettings = DEFAULT_CLUSTER) -> Amounts:
    """Return the limits for the sum of all pods."""
    return effective(tenant.quota, cluster.quota, sum_amounts(tenant.computing_units, tenant.maintenance))


def resource_quota(tenant: TenantSpec, cluster: ClusterSettings = DEFAULT_CLUSTER) -> Manifest:
    """Return the quota of the namespace. Services that open ports outside the cluster are not allowed."""
    limits = compute_quota(tenant, cluster)
    names = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "scratch"}
    hard = {
        **{f"{side}.{name}": limits.text(amount) for side in ("requests", "limits") for name, amount in names.items()},
        f"requests.{cluster.gpu.resource}": limits.text("gpu"),
        "pods": limits.text("pods"),
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    return _object("v1", "ResourceQuota", namespace_name(tenant.name), tenant) | {"spec": {"hard": hard}}


def limit_range(tenant: TenantSpec, cluster: ClusterSettings = DEFAULT_CLUSTER) -> Manifest:
    """Return the defaults and limits of single containers. No container may exceed the quota of the namespace."""
    highest, default = compute_quota(tenant, cluster), count_amounts(DEFAULT_CONTAINER)
    names = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "scratch"}
    least = Amounts(**{amount: min(getattr(highest, amount), getattr(default, amount)) for amount in names.values()})
    ordinary = {name: least.text(amount) for name, amount in names.items()}
    limits = {
        "type": "Container",
        "default": ordinary,
        "defaultRequest": ordinary,
        "max": {name: highest.text(amount) for name, amount in names.items()},
    }
    return _object("v1", "LimitRange", namespace_name(tenant.name), tenant) | {"spec": {"limits": [limits]}}


def trust_config_map(tenant: TenantSpec, cluster: ClusterSettings) -> Manifest | None:
    """Return the ConfigMap of the environment's certificate authorities; None if it has no file of them."""
    content = trust.config_map_content(cluster)
    return content and _object("v1", "ConfigMap", TRUST, tenant) | content


def headless_service(tenant: TenantSpec) -> Manifest:
    """Return the Service by which each unit's pod has the host name UNIT.computing-units."""
    return _object("v1", "Service", COMPUTING_UNITS, tenant) | {
        "spec": {"clusterIP": "None", "selector": {**UNIT_LABEL}}
    }


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec) -> Manifest:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace_name(tenant.name), "labels": labels(tenant)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
