"""Common parts of the platform's manifests: metadata, labels, containers and pods under Pod Security restricted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakewright.platform_stack.settings.platform import PlatformSpec, PodResources
from lakewright.platform_stack.settings.pods import ExtraPodParts, PodSettings, ServiceSettings

Manifest = dict[str, Any]

LAKEKEEPER_USER, LAKEKEEPER_GROUP = 65532, 65534
"""User and group of Lakekeeper's image, as its Helm chart sets them."""

ENCRYPTED = {"seccompProfile": {"type": "RuntimeDefault"}}


def component_labels(spec: PlatformSpec, component: str) -> dict[str, str]:
    """Return the labels of a component, which selectors match. They never change."""
    return {"app.kubernetes.io/instance": spec.name, "app.kubernetes.io/component": component}


def labels(spec: PlatformSpec, component: str | None = None) -> dict[str, str]:
    """Return all labels of an object."""
    common = {"app.kubernetes.io/part-of": "lakewright-platform", "app.kubernetes.io/managed-by": "lakewright"}
    return common | (component_labels(spec, component) if component else {"app.kubernetes.io/instance": spec.name})


def make_object(
    platform: PlatformSpec, api_version: str, kind: str, name: str, component: str | None = None, /, **parts: Any
) -> Manifest:
    """Return an object of the platform's namespace."""
    metadata = {"name": name, "namespace": platform.namespace, "labels": labels(platform, component)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def cluster_object(platform: PlatformSpec, api_version: str, kind: str, name: str, /, **parts: Any) -> Manifest:
    """Return an object without a namespace."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels(platform)}, **parts}


def make_restricted_container(name: str, image: str, *, resources: PodResources, **parts: Any) -> dict[str, Any]:
    """Return a container that writes to its volumes only and has no privileges."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {"cpu": resources.cpu, "memory": resources.memory},
            "limits": {"memory": resources.memory_limit},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **parts,
    }


def pod_spec(
    *, service_account: str, containers: Sequence[Manifest], user: int, group: int, **parts: Any
) -> dict[str, Any]:
    """Return the spec of a pod that Pod Security restricted admits."""
    return {
        "serviceAccountName": service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": group,
            "fsGroup": group,
            **ENCRYPTED,
        },
        "containers": list(containers),
        **parts,
    }


def spread(labels_: Mapping[str, str]) -> dict[str, Any]:
    """Return fields of a pod that spread replicas over nodes and zones where there are several."""
    term = {"labelSelector": {"matchLabels": dict(labels_)}, "topologyKey": "kubernetes.io/hostname"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels_)},
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "topologySpreadConstraints": [constraint],
    }


def apply_pod_settings(template: Manifest, settings: PodSettings) -> Manifest:
    """Return a pod's template with the settings of its pods. Labels and annotations of the stack win."""
    metadata: dict[str, Any] = {**template["metadata"], "labels": settings.labels | template["metadata"]["labels"]}
    if annotations := settings.annotations | template["metadata"].get("annotations", {}):
        metadata["annotations"] = annotations
    return {**template, "metadata": metadata, "spec": template["spec"] | settings.to_pod_fields()}


def add_extra_parts(template: Manifest, extra: ExtraPodParts) -> Manifest:
    """Return a template of Lakekeeper's pods with further init containers first, volumes and sources of variables."""
    spec = template["spec"]
    parts = {
        "initContainers": [*extra.init_containers, *_extend_containers(spec["initContainers"], extra)],
        "containers": _extend_containers(spec["containers"], extra),
        "volumes": [*spec["volumes"], *extra.volumes],
    }
    return {**template, "spec": spec | parts}


def _extend_containers(containers: Sequence[Manifest], extra: ExtraPodParts) -> list[Manifest]:
    sources = {"envFrom": list(extra.env_from)} if extra.env_from else {}
    return [
        {**container, "volumeMounts": [*container["volumeMounts"], *extra.volume_mounts], **sources}
        for container in containers
    ]


def make_env(plain: Mapping[str, str], secrets: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the `env` of a container. `secrets` has Secret and key by variable."""
    entries: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in sorted(plain.items())]
    for name, (secret, key) in sorted(secrets.items()):
        entries.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    return entries


def http_probe(path: str, port: int, *, scheme: str = "HTTP", failures: int = 5, period: int = 5) -> dict[str, Any]:
    """Return a probe by HTTP."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": scheme},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def disruption_budget(spec: PlatformSpec, name: str, component: str, *, min_available: int | None) -> Manifest:
    """Return a budget for drains: it keeps `min_available` replicas, by default all but one."""
    limit = {"maxUnavailable": 1} if min_available is None else {"minAvailable": min_available}
    selector = {"matchLabels": component_labels(spec, component)}
    return make_object(
        spec,
        "policy/v1",
        "PodDisruptionBudget",
        name,
        component,
        spec={**limit, "selector": selector},
    )


def cluster_service(
    spec: PlatformSpec, name: str, component: str, ports: Mapping[str, int], *, service: ServiceSettings | None = None
) -> Manifest:
    """Return a Service whose ports equal the pods' ports. Default: reachable within the cluster only."""
    entries = [{"name": key, "port": port, "targetPort": port, "protocol": "TCP"} for key, port in ports.items()]
    kind = service.type if service else "ClusterIP"
    manifest = make_object(
        spec,
        "v1",
        "Service",
        name,
        component,
        spec={"type": kind, "selector": component_labels(spec, component), "ports": entries},
    )
    if service and service.annotations:
        manifest["metadata"]["annotations"] = dict(service.annotations)
    return manifest


def compute_short_hash(value: Any) -> str:
    """Return ten characters that change with a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
