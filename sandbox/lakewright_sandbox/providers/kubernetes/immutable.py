"""Which fields of a Kubernetes object cannot change in place, and which kinds live outside namespaces.

From the Kubernetes API's own update validation and the real provider's documented replacement rules.
"""

from __future__ import annotations

from lakewright_sandbox.providers.kubernetes.manifests import Manifest
from lakewright_sandbox.providers.protocol.difference import under

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
    """Whether objects of a kind live in a namespace; a custom kind is taken to."""
    return kind not in _CLUSTER_SCOPED


def forces_replacement(path: str, manifest: Manifest, mutable: frozenset[str]) -> bool:
    """Whether a change at `path` needs a new object; `mutable` names the kinds whose data may change in place."""
    group, _, _ = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    fixed = _IDENTITY + _BY_KIND.get((group, kind), ())
    if group == "" and kind in ("ConfigMap", "Secret") and (kind not in mutable or manifest.get("immutable") is True):
        fixed += ("binaryData", "data", "stringData")
    return any(under(path, field) for field in fixed)
