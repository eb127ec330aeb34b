"""Decide whether a live object surely is healthy for the plugin, which reports other objects as failed to initialize.

Follows the read awaiters of pulumi-kubernetes 4.34 (`provider/pkg/await`). A refresh of an object that failed to
initialize plans an update of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

Document = Mapping[str, Any]

_SKIP = "pulumi.com/skipAwait"
_REVISION = "deployment.kubernetes.io/revision"


def is_healthy(live: Document, inputs: Document, endpoints: Document | None) -> bool:
    """Return whether the plugin surely finds the object healthy.

    Args:
        live: The object.
        inputs: The inputs of its state.
        endpoints: The Endpoints object with the name of a Service; None if it does not exist, and for other kinds.
    """
    if str(_get_nested(inputs, "metadata", "annotations").get(_SKIP)).lower() == "true":
        return True
    kind = str(live.get("kind"))
    if kind == "Service":
        return _is_service_healthy(live, endpoints)
    check = _CHECKS.get(kind)
    return check is None or check(live)


def needs_endpoints(live: Document) -> bool:
    """Return whether the health of an object depends on its Endpoints."""
    spec = _get_nested(live, "spec")
    return (
        live.get("kind") == "Service"
        and bool(spec.get("selector"))
        and spec.get("type") != "ExternalName"
        and spec.get("clusterIP") != "None"
    )


def _is_service_healthy(live: Document, endpoints: Document | None) -> bool:
    if _get_nested(live, "spec").get("type") == "LoadBalancer" and not _get_nested(live, "status", "loadBalancer").get(
        "ingress"
    ):
        return False
    if not needs_endpoints(live) or endpoints is None:
        return True
    return not any(as_mapping(subset).get("notReadyAddresses") for subset in as_list(endpoints.get("subsets")))


def _is_deployment_healthy(live: Document) -> bool:
    spec, status = _get_nested(live, "spec"), _get_nested(live, "status")
    revision = _get_nested(live, "metadata", "annotations").get(_REVISION)
    conditions = {as_mapping(item).get("type"): as_mapping(item) for item in as_list(status.get("conditions"))}
    available, progressing = conditions.get("Available", {}), conditions.get("Progressing", {})
    has_rolled_out = progressing.get("status") == "True" and progressing.get("reason") == "NewReplicaSetAvailable"
    volumes = as_list(_get_nested(live, "spec", "template", "spec").get("volumes"))
    return (
        bool(revision)
        and _is_observed(live)
        and available.get("status") == "True"
        and (revision == "1" or has_rolled_out)
        and _has_counts(status, spec.get("replicas", 1), "replicas", "updatedReplicas", "readyReplicas")
        # The state of claims is not in the Deployment.
        and not any("persistentVolumeClaim" in as_mapping(volume) for volume in volumes)
    )


def _is_job_healthy(live: Document) -> bool:
    conditions = map(as_mapping, as_list(_get_nested(live, "status").get("conditions")))
    return any(item.get("type") == "Complete" and item.get("status") == "True" for item in conditions)


def _is_observed(live: Document) -> bool:
    """Return whether the status is that of the newest change of the specification."""
    generation = _get_nested(live, "metadata").get("generation")
    return generation is not None and generation == _get_nested(live, "status").get("observedGeneration")


def _has_counts(status: Document, expected_count: object, *names: str) -> bool:
    return all(status.get(name, 0) == expected_count for name in names)


def _get_nested(document: Document, *keys: str) -> Document:
    for key in keys:
        document = as_mapping(document.get(key))
    return document


def _is_unknown(_live: Document) -> bool:
    return False


_CHECKS: dict[str, Callable[[Document], bool]] = {
    "Deployment": _is_deployment_healthy,
    "Job": _is_job_healthy,
    "DaemonSet": _is_unknown,
    "Ingress": _is_unknown,
    "Pod": _is_unknown,
    "StatefulSet": _is_unknown,
}
"""Kinds that the plugin waits for. It decides about kinds whose health is not in the object."""
