"""The quota that starts no computing unit while a limit of compute is reached. Pure functions.

Its scope `NotTerminating` has pods without a deadline: computing units, and the activator that starts idle units. Pods
of maintenance jobs have a deadline then, so they are started. Pods that run already are not stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.kubernetes.manifests import Manifest
from lakewright.names.object_names import COMPUTE_LIMIT
from lakewright.spec import TenantSpec

ENFORCED = "lakewright/compute-limit"
"""Annotation of the namespaces of tenants whose limit of compute is enforced."""


def annotate_namespace(tenant: TenantSpec) -> dict[str, str]:
    """Return the annotation of a tenant's namespace by which `lakewright enforce-limits` recognizes it."""
    return {ENFORCED: "enforced"} if tenant.enforces_compute else {}


def is_enforced(namespace: Mapping[str, Any]) -> bool:
    """Return whether the limit of compute of a tenant is enforced, by the declared metadata of its namespace."""
    annotations: Mapping[str, Any] = namespace.get("annotations") or {}
    return annotations.get(ENFORCED) == "enforced"


def limit_pod_time(tenant: TenantSpec, seconds: int) -> dict[str, int]:
    """Return the deadline of a job's pod, which excludes it from the quota; nothing without an enforced limit."""
    return {"activeDeadlineSeconds": seconds} if tenant.enforces_compute else {}


def build_quota(namespace: str, labels: Mapping[str, str]) -> Manifest:
    """Return the quota that refuses new pods without a deadline."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": COMPUTE_LIMIT,
            "namespace": namespace,
            "labels": {**labels, "app.kubernetes.io/managed-by": "lakewright"},
            "annotations": {"lakewright/reason": "the tenant's limit of compute hours is reached in this month"},
        },
        "spec": {"hard": {"pods": "0"}, "scopes": ["NotTerminating"]},
    }
