"""Decide whether a live Kubernetes object surely is as declared.

Follows Read and Diff of pulumi-kubernetes 4.34 with server-side apply: the live object, without the fields that the
inputs do not set, must equal the inputs. The plugin normalizes more, such as quantities, so an object that differs
here may still be the same for the plugin. It decides about all objects that differ here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lakewright_engine.model.properties import has_secret
from lakewright_engine.model.resources import ResourceState, SecretValue, Value

_READ_ONLY = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
"""Metadata that the plugin removes from inputs before it compares."""


def is_as_declared(resource: ResourceState, live: Mapping[str, Any]) -> bool:
    """Return whether the plugin surely finds no difference between a live object and the inputs of its state.

    Secrets of the state are not decrypted. They are equal if the object has the version that the last update left.

    Args:
        resource: The state of the object.
        live: The object as the API server lists it, with `apiVersion` and `kind`.
    """
    same_version = _get_version(live) is not None and _get_version(live) == _get_version(resource.outputs)
    declared_inputs = {key: value for key, value in resource.inputs.items() if not key.startswith("__")}
    metadata = declared_inputs.get("metadata")
    if not isinstance(metadata, dict):
        return False
    declared_inputs["metadata"] = {key: value for key, value in metadata.items() if key not in _READ_ONLY}
    if has_secret(declared_inputs) and not same_version:
        return False
    return _equals(live, declared_inputs)


def _get_version(document: Mapping[str, Any]) -> tuple[object, object] | None:
    """Return uid and version of an object; None if they are not known."""
    metadata: object = document.get("metadata")
    if not isinstance(metadata, dict):
        return None
    members = cast(dict[str, object], metadata)
    version = members.get("uid"), members.get("resourceVersion")
    return version if all(isinstance(part, str) and part for part in version) else None


def _equals(live: object, declared_value: Value) -> bool:
    """Compare a live value, reduced to the shape of the declared value, with the declared value."""
    if isinstance(declared_value, SecretValue):
        return True
    if isinstance(declared_value, dict):
        if not isinstance(live, dict):
            return False
        members = cast(dict[str, object], live)
        return all(
            _equals(members[key], value) if key in members else isinstance(value, SecretValue)
            for key, value in declared_value.items()
        )
    if isinstance(declared_value, list):
        if not isinstance(live, list):
            return False
        items = cast(list[object], live)
        # The plugin reduces a longer list to the declared length: additional items are not a difference.
        return len(items) >= len(declared_value) and all(map(_equals, items, declared_value))
    return isinstance(live, bool) == isinstance(declared_value, bool) and live == declared_value
