"""Pods and the quotas of their namespaces, by the rules of the API server. No pod runs: a test sets its status.

Sources: `pkg/registry/core/pod/strategy.go`, `pkg/quota/v1/evaluator/core/pods.go`, `pkg/apis/core/validation` and
`plugin/pkg/admission/resourcequota` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from lakewright_sandbox.cluster.fields import Json
from lakewright_sandbox.cluster.status import ApiStatusError

_FINISHED = frozenset({"Succeeded", "Failed"})
_SCOPED = {"Terminating": True, "NotTerminating": False}
"""Whether a scope has the pods with `activeDeadlineSeconds`."""
_SIZES = ("cpu", "memory", "ephemeral-storage")
_POD_RESOURCES = frozenset({"pods", *_SIZES, *(f"{side}.{size}" for side in ("requests", "limits") for size in _SIZES)})


def reset_status(pod: Json) -> Json:
    """Return a pod as it is stored: only the kubelet writes its status."""
    return {**pod, "status": {"phase": "Pending"}}


def check_quota(quota: Json) -> None:
    """Refuse a quota whose scope does not fit its resources. Raises 422."""
    spec = cast(Json, quota.get("spec") or {})
    scopes = [scope for scope in _list_scopes(spec) if scope in _SCOPED]
    refused = sorted(set(cast(Json, spec.get("hard") or {})) - _POD_RESOURCES)
    if scopes and refused:
        detail = f"Invalid value: {scopes}: unsupported scope applied to resource"
        cause = {"reason": "FieldValueInvalid", "message": detail, "field": "spec.scopes"}
        name = quota["metadata"]["name"]
        raise ApiStatusError(422, f'ResourceQuota "{name}" is invalid: spec.scopes: {detail}', "Invalid", [cause])


def admit_pod(pod: Json, quotas: Iterable[Json], pods: Iterable[Json]) -> None:
    """Refuse a pod that exceeds the number of pods of a quota. Raises 403. Other resources are not counted."""
    present_pods = list(pods)
    for quota in quotas:
        spec = cast(Json, quota.get("spec") or {})
        hard: Any = cast(Json, spec.get("hard") or {}).get("pods")
        if hard is None or not _matches(pod, spec):
            continue
        used = sum(_matches(other, spec) and _is_active(other) for other in present_pods)
        if used + 1 > int(hard):
            message = (
                f'pods "{pod["metadata"]["name"]}" is forbidden: exceeded quota: {quota["metadata"]["name"]},'
                f" requested: pods=1, used: pods={used}, limited: pods={hard}"
            )
            raise ApiStatusError(403, message, "Forbidden")


def _matches(pod: Json, quota: Json) -> bool:
    has_deadline = cast(Json, pod.get("spec") or {}).get("activeDeadlineSeconds") is not None
    return all(_SCOPED.get(scope) in (None, has_deadline) for scope in _list_scopes(quota))


def _list_scopes(quota: Json) -> list[str]:
    return cast(list[str], quota.get("scopes") or [])


def _is_active(pod: Json) -> bool:
    return cast(Json, pod.get("status") or {}).get("phase") not in _FINISHED
