"""A configured `kubernetes` provider that renders objects of any kind into one directory.

As in the real provider's rendering mode, the state is the truth: Read returns the last rendered object, and a file that
was removed or edited is not drift (`alwaysRender` writes every file again at each update).
"""
# ruff: noqa: ARG002  Every provider instance gets these parameters.

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakewright_sandbox.providers.kubernetes import manifests
from lakewright_sandbox.providers.kubernetes.immutable import forces_replacement, is_namespaced
from lakewright_sandbox.providers.protocol.difference import Change, ResourceDifference, compare
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import (
    UNKNOWN,
    Properties,
    contains_unknown,
    drop_internal,
    mark_secrets,
)
from lakewright_sandbox.providers.protocol.servicer import LiveResource, PropertyFailure, ResourceRef
from lakewright_sandbox.typed.json_values import is_object

_AUTONAMED = "pulumi.com/autonamed"
_FIELD_MANAGER = "pulumi.com/patchFieldManager"
_READ_ONLY = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)


@dataclass(frozen=True)
class Rendering:
    """Render objects into `directory`; objects without a namespace go to `namespace`."""

    directory: Path | None
    namespace: str | None
    always: bool
    mutable: frozenset[str]
    field_manager: Callable[[], str]
    plain_text_warning: str | None = "rendered YAML will contain a secret value in plaintext"

    def check(
        self, resource: ResourceRef, olds: Properties, news: Properties, seed: bytes
    ) -> tuple[Properties, list[PropertyFailure]]:
        """Name unnamed objects, set the default namespace, and refuse what cannot be rendered."""
        _refuse_unsupported(resource)
        inputs = _normalize(news)
        metadata = inputs.setdefault("metadata", {})
        if not is_object(metadata):
            return inputs, []
        if not metadata.get("name"):
            if metadata.get("generateName"):
                reason = "the `.metadata.generateName` field is not supported in YAML rendering mode"
                return inputs, [PropertyFailure("metadata.generateName", reason)]
            old = olds.get("metadata", {})
            kept_name = old.get("name") if _is_autonamed(olds) else None
            metadata["name"] = kept_name or f"{resource.name}-{_suffix(seed)}"
            metadata.setdefault("annotations", {})[_AUTONAMED] = "true"
        if self.namespace and not metadata.get("namespace") and is_namespaced(_kind(resource)):
            metadata["namespace"] = self.namespace
        return inputs, []

    def diff(
        self, resource: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties
    ) -> ResourceDifference:
        """Compare the rendered object with the new inputs."""
        old = _comparable(olds.get("__inputs") or old_inputs or drop_internal(olds))
        new = _comparable(news)
        changes: dict[str, Change] = compare(old, new)
        replaces = frozenset(path for path in changes if forces_replacement(path, old | new, self.mutable))
        if self.always and not changes:
            changes = {"metadata": "update"}
        same_place = all(
            old["metadata"].get(key) == new["metadata"].get(key) != UNKNOWN for key in ("name", "namespace")
        )
        return ResourceDifference(changes, replaces, bool(replaces) and same_place and not _is_autonamed(news))

    def preview_create(self, resource: ResourceRef, inputs: Properties) -> Properties:
        """Return the inputs."""
        return inputs

    def create(self, resource: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Render a new object."""
        manifests.write(inputs, self._directory())
        return object_id(inputs), self._state(inputs, {})

    def read(self, resource: ResourceRef, olds: Properties, old_inputs: Properties) -> LiveResource | None:
        """Return the last rendered object; without a state (an import, a killed create), the content of the file."""
        if resource.id and olds:
            return LiveResource(resource.id, olds, old_inputs)
        manifest = old_inputs or manifest_from_id(resource)
        rendered = manifests.load(manifests.manifest_path(manifest, self._directory()))
        if rendered is None:
            return None
        return LiveResource(object_id(rendered), self._state(rendered, olds), rendered)

    def preview_update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Return the new inputs with the provider's own state."""
        return news if contains_unknown(news) else self._state(news, olds)

    def update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Render the object again, and remove its old file if the path changed."""
        written = manifests.write(news, self._directory())
        before = manifests.manifest_path(drop_internal(olds), self._directory())
        if before != written:
            manifests.remove(before)
        return self._state(news, olds)

    def delete(self, resource: ResourceRef, olds: Properties) -> None:
        """Remove the object's file."""
        manifests.remove(manifests.manifest_path(drop_internal(olds), self._directory()))

    def invoke(self, token: str, args: Properties) -> Properties:
        """Refuse functions: the real provider alone supports Helm charts, kustomizations and YAML files."""
        raise UnsupportedError(_only_real_provider(f"the function {token}"))

    def mark_secrets(self, properties: Properties, raw_inputs: Properties) -> Properties:
        """Mark properties and their kept inputs secret as the inputs are, and `data` as `stringData` is."""
        marked = mark_secrets(properties, raw_inputs)
        string_data = raw_inputs.get("stringData")
        if is_object(string_data) and is_object(data := marked.get("data")):
            marked["data"] = mark_secrets({"data": data}, {"data": string_data})["data"]
        if is_object(inputs := properties.get("__inputs")):
            marked["__inputs"] = self.mark_secrets(inputs, raw_inputs)
        return marked

    def _directory(self) -> Path:
        if self.directory is None:
            raise SandboxProviderError("renderYamlToDirectory is not known yet, so no manifest can be rendered")
        return self.directory

    def _state(self, inputs: Properties, olds: Properties) -> Properties:
        annotated_manager = inputs["metadata"].get("annotations", {}).get(_FIELD_MANAGER)
        return inputs | {
            "__inputs": inputs,
            "__initialApiVersion": olds.get("__initialApiVersion") or inputs["apiVersion"],
            "__fieldManager": annotated_manager or olds.get("__fieldManager") or self.field_manager(),
        }


def _refuse_unsupported(resource: ResourceRef) -> None:
    kind = _kind(resource)
    if resource.type.startswith("kubernetes:helm.sh") or ":yaml/" in resource.type or kind.endswith(("List", "Patch")):
        raise UnsupportedError(_only_real_provider(f"the type {resource.type}"))


def _only_real_provider(feature: str) -> str:
    return (
        f"the sandbox's kubernetes provider does not support {feature}; run `pulumi plugin install resource "
        "kubernetes` and use the real provider"
    )


def _kind(resource: ResourceRef) -> str:
    return resource.type.rsplit(":", 1)[-1]


def manifest_from_id(resource: ResourceRef) -> Properties:
    """Return the part of a manifest that type and id contain, enough to find its file."""
    _, version, kind = resource.type.split(":")
    namespace, _, name = resource.id.rpartition("/")
    return {
        "apiVersion": version.removeprefix("core/"),
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
    }


def object_id(manifest: Properties) -> str:
    """Return the id of an object: its name, after its namespace if it has one."""
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


def _suffix(seed: bytes) -> str:
    return hashlib.sha256(seed).hexdigest()[:8] if seed else secrets.token_hex(4)


def _is_autonamed(manifest: Properties) -> bool:
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if is_object(metadata) else None
    return is_object(annotations) and annotations.get(_AUTONAMED) == "true"


def _normalize(news: Properties) -> Properties:
    """Return inputs as the API server would: no read-only metadata, and a Secret's `stringData` in its `data`."""
    inputs = deepcopy(drop_internal(news))
    if is_object(metadata := inputs.get("metadata")):
        for key in _READ_ONLY:
            metadata.pop(key, None)
    is_secret = inputs.get("kind") == "Secret" and inputs.get("apiVersion") == "v1"
    if is_secret and is_object(inputs.get("stringData")) and not contains_unknown(inputs):
        plain: dict[str, Any] = inputs["stringData"]
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
        inputs["data"] = inputs.get("data", {}) | encoded
    return inputs


def _comparable(manifest: Properties) -> Properties:
    """Return a manifest with its effective namespace: `default` if none is set, none for cluster-wide kinds."""
    canonical = _normalize(manifest)
    metadata = canonical.setdefault("metadata", {})
    if is_object(metadata):
        if is_namespaced(canonical.get("kind", "")):
            metadata["namespace"] = metadata.get("namespace") or "default"
        else:
            metadata.pop("namespace", None)
    return canonical
