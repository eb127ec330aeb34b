"""Fields of Kubernetes objects that force a replacement, and kinds without a namespace.

From the Kubernetes API's own update validation and the real provider's documented replacement rules.
"""

from __future__ import annotations

from lakewright_sandbox.providers.kubernetes.manifests import Manifest
from lakewright_sandbox.providers.protocol.difference import is_below

_IDENTITY = ("metadata.name", "metadata.namespace")

_BY_KIND: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "StatefulSet"): (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner"),
    ("", "PersistentVolumeClaim"): (
        "spec.accessModes",
        "spec.selector",
        "spec.storageClassName",
        "spec.volumeName",
    ),
    ("", "Pod"): ("spec",),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("", "Service"): ("spec.clusterIP",),
    ("", "Secret"): ("type",),
}

_CLUSTER_SCOPED = {
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CSIDriver",
    "CSINode",
    "CustomResourceDefinition",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
}


def is_namespaced(kind: str) -> bool:
    """Return whether objects of a kind are in a namespace; custom kinds are."""
    return kind not in _CLUSTER_SCOPED


def forces_replacement(path: str, manifest: Manifest, mutable: frozenset[str]) -> bool:
    """Return whether a change at `path` needs a new object; `mutable` names the kinds with changeable data."""
    group, _, _ = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    fixed = _IDENTITY + _BY_KIND.get((group, kind), ())
    if group == "" and kind in ("ConfigMap", "Secret") and (kind not in mutable or manifest.get("immutable") is True):
        fixed += ("binaryData", "data", "stringData")
    return any(is_below(path, field) for field in fixed)
