"""The kinds of objects that the cluster supports, by the name of their collection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object: where it is served, and which fields never change."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True
    immutable: tuple[str, ...] = ()
    """Keys of `spec` that an update must not change."""

    @property
    def group(self) -> str:
        """Return the API group, empty for core kinds."""
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """Return the collection's name in messages: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_CORE = (
    ObjectKind("v1", "Namespace", "namespaces", namespaced=False),
    ObjectKind("v1", "ConfigMap", "configmaps"),
    ObjectKind("v1", "LimitRange", "limitranges"),
    ObjectKind("v1", "Pod", "pods"),
    ObjectKind("v1", "ResourceQuota", "resourcequotas"),
    ObjectKind("v1", "Secret", "secrets"),
    ObjectKind("v1", "Service", "services"),
    ObjectKind("v1", "ServiceAccount", "serviceaccounts"),
)
_OTHERS = (
    ObjectKind("apps/v1", "Deployment", "deployments", immutable=("selector",)),
    ObjectKind("apps/v1", "StatefulSet", "statefulsets", immutable=("selector", "serviceName")),
    ObjectKind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ObjectKind("batch/v1", "CronJob", "cronjobs"),
    ObjectKind("batch/v1", "Job", "jobs", immutable=("selector", "template")),
    ObjectKind("networking.k8s.io/v1", "Ingress", "ingresses"),
    ObjectKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ObjectKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ObjectKind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False),
    ObjectKind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    ObjectKind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ObjectKind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
)
KINDS = {(kind.api_version, kind.plural): kind for kind in (*_CORE, *_OTHERS)}


def find_kind(api_version: str, kind: str) -> ObjectKind | None:
    """Return a kind by the API version and kind of a manifest."""
    return next((entry for entry in KINDS.values() if (entry.api_version, entry.kind) == (api_version, kind)), None)
