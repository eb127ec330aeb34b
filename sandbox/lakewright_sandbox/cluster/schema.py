"""Merge rules of Kubernetes objects: which lists have keys, and which values are replaced as a whole.

From the `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` extensions of the API's OpenAPI document, for the
kinds of a tenant's stack.
"""

from __future__ import annotations

Path = tuple[str, ...]
"""Path of a field, with parts as in `fieldsV1`: `f:NAME`, `k:{"KEY":VALUE}` or `v:VALUE`."""

_KEYS: dict[str, tuple[str, ...]] = {
    "f:conditions": ("type",),
    "f:containers": ("name",),
    "f:env": ("name",),
    "f:ephemeralContainers": ("name",),
    "f:hostAliases": ("ip",),
    "f:imagePullSecrets": ("name",),
    "f:initContainers": ("name",),
    "f:ownerReferences": ("uid",),
    "f:secrets": ("name",),
    "f:volumeMounts": ("mountPath",),
    "f:volumes": ("name",),
}
_ATOMIC = {
    "f:configMapKeyRef",
    "f:fieldRef",
    "f:namespaceSelector",
    "f:nodeSelector",
    "f:podSelector",
    "f:resourceFieldRef",
    "f:roleRef",
    "f:secretKeyRef",
    "f:selector",
}
DEFAULTS = {"protocol": "TCP"}
"""Defaults of list keys that a manifest may omit."""


def list_keys(path: Path) -> tuple[str, ...] | None:
    """Return the keys that identify a list's items, None for a list that is replaced as a whole."""
    if path[-1] != "f:ports":
        return _KEYS.get(path[-1])
    if path == ("f:spec", "f:ports"):
        return ("port", "protocol")
    is_of_container = len(path) > 2 and path[-3] in ("f:containers", "f:initContainers")
    return ("containerPort", "protocol") if is_of_container else None


def is_set(path: Path) -> bool:
    """Return whether a list holds unique values that are owned separately."""
    return path == ("f:metadata", "f:finalizers")


def is_atomic(path: Path) -> bool:
    """Return whether a nested object is replaced and owned as a whole."""
    return bool(path) and path[-1] in _ATOMIC
