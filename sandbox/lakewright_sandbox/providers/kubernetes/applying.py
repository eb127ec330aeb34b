"""A configured `kubernetes` provider for the sandbox's cluster, with server-side apply as in the real plugin.

Follows pulumi-kubernetes 4.34: creates are POSTs (applies with `upsertExistingObjects`), updates are applies under a
field manager of the resource, previews are dry runs, and a refresh compares the fields of the inputs with the live
object.
"""
# ruff: noqa: ARG002  Every provider instance gets these parameters.

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lakewright_sandbox.cluster.ownership import Owner, field_owners
from lakewright_sandbox.providers.kubernetes.connection import ClusterConnection, RefusedByClusterError
from lakewright_sandbox.providers.kubernetes.manifests import Manifest
from lakewright_sandbox.providers.kubernetes.rendering import Rendering, manifest_from_id, object_id
from lakewright_sandbox.providers.protocol.difference import ResourceDifference
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError
from lakewright_sandbox.providers.protocol.properties import Properties, contains_unknown, drop_internal
from lakewright_sandbox.providers.protocol.servicer import LiveResource, ResourceRef
from lakewright_sandbox.typed.json_values import is_array, is_object

_FORCE = "pulumi.com/patchForce"
_IMMUTABLE = "field is immutable"
_TROUBLESHOOTING = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)
_OWN_UPDATES = ("pulumi-kubernetes", "pulumi-kubernetes.exe", "pulumi-resource-kubernetes")
_TAKEN_OVER = {
    ("kubectl", "Apply", ""),
    ("kubectl", "Update", ""),
    ("before-first-apply", "Update", ""),
    *((manager, "Update", "") for manager in _OWN_UPDATES),
}
"""Owners whose fields an update takes over without a conflict. `kubectl scale` has another subresource."""


@dataclass(frozen=True)
class Applying(Rendering):
    """Apply objects to a cluster; with `force`, also over fields of other owners."""

    connection: ClusterConnection | None = None
    force: bool = False
    plain_text_warning: str | None = None

    def diff(
        self, resource: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties
    ) -> ResourceDifference:
        """Compare the live fields that the old inputs set with the new inputs."""
        live = select_set_fields(drop_internal(olds), olds.get("__inputs") or old_inputs)
        return super().diff(resource, {"__inputs": live}, news, old_inputs)

    def preview_create(self, resource: ResourceRef, inputs: Properties) -> Properties:
        """Dry-run a create; return the inputs if it must replace an object or its namespace does not exist yet."""
        if contains_unknown(inputs):
            return inputs
        state = self._state(inputs, {})
        try:
            return self._build_state(inputs, self._create(inputs, state["__fieldManager"], dry_run=True), state)
        except RefusedByClusterError as refused:
            if refused.reason in ("AlreadyExists", "NotFound") or _IMMUTABLE in str(refused):
                return inputs
            raise

    def create(self, resource: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Create an object. Raises SandboxProviderError if the cluster refuses it."""
        state = self._state(inputs, {})
        manager = state["__fieldManager"]
        try:
            live = self._create(inputs, manager, dry_run=False)
        except RefusedByClusterError as refused:
            raise SandboxProviderError(
                f'resource "{resource.urn}" was not successfully created by the Kubernetes API server: '
                + _describe(refused, manager)
            ) from refused
        return object_id(live), self._build_state(inputs, live, state)

    def read(self, resource: ResourceRef, olds: Properties, old_inputs: Properties) -> LiveResource | None:
        """Return the live object, with the live values of the fields that the inputs set."""
        manifest = old_inputs or manifest_from_id(resource)
        live = self._cluster.get(manifest)
        if live is None:
            return None
        inputs = select_set_fields(live, old_inputs) if old_inputs else _drop_read_only(live)
        return LiveResource(resource.id or object_id(live), self._build_state(inputs, live, olds), inputs)

    def preview_update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Dry-run an update, so that conflicts already fail the preview."""
        return news if contains_unknown(news) else self._apply(resource, olds, news, dry_run=True)

    def update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Apply the new inputs."""
        return self._apply(resource, olds, news, dry_run=False)

    def delete(self, resource: ResourceRef, olds: Properties) -> None:
        """Delete the object if it exists."""
        self._cluster.delete(drop_internal(olds))

    @property
    def _cluster(self) -> ClusterConnection:
        if self.connection is None:
            raise SandboxProviderError("the cluster is not known yet, so nothing can be applied to it")
        return self.connection

    def _create(self, inputs: Properties, manager: str, *, dry_run: bool) -> Manifest:
        """Create an object by POST, which the cluster refuses if the object exists."""
        return self._cluster.create(inputs, dry_run=dry_run)

    def _apply(self, resource: ResourceRef, olds: Properties, news: Properties, *, dry_run: bool) -> Properties:
        live = self._cluster.get(news)
        if live is None:
            raise SandboxProviderError(
                f'update of resource "{resource.urn}" failed: {news["metadata"]["name"]} not found'
            )
        state = self._state(news, olds)
        manager = state["__fieldManager"]
        force = self._forces(news, live, dry_run=dry_run)
        if not dry_run:
            live = self._take_over(live, manager)
        manifest = leave_ignored_fields(news, live, manager, resource.ignore_changes)
        try:
            applied_object = self._cluster.apply(manifest, manager, force=force, dry_run=dry_run)
        except RefusedByClusterError as refused:
            raise SandboxProviderError(_describe(refused, manager)) from None
        return self._build_state(manifest, applied_object, state)

    def _is_force_set(self, news: Manifest) -> bool:
        annotations: Properties = news["metadata"].get("annotations") or {}
        return self.force or str(annotations.get(_FORCE, "")).lower() == "true"

    def _forces(self, news: Manifest, live: Manifest, *, dry_run: bool) -> bool:
        if self._is_force_set(news) or not field_owners(live):
            return True
        created = (owner.operation == "Update" and owner.manager in _OWN_UPDATES for owner in field_owners(live))
        return dry_run and any(created)

    def _take_over(self, live: Manifest, manager: str) -> Manifest:
        """Give the resource's field manager the fields of earlier creates and plain `kubectl apply`.

        Returns:
            The object with its new owners.
        """
        entries: list[Properties] = live["metadata"]["managedFields"]
        owners = field_owners(live)
        taken = [owner for owner in owners if (owner.manager, owner.operation, owner.subresource) in _TAKEN_OVER]
        if not taken:
            return live
        mine = next((owner for owner in owners if owner.manager == manager), None)
        fields = frozenset[tuple[str, ...]]().union(*(owner.fields for owner in [*taken, *([mine] if mine else [])]))
        apply_owner = Owner(manager, "Apply", live["apiVersion"], time=taken[0].time, fields=fields)
        other_entries = [
            entry for entry, owner in zip(entries, owners, strict=True) if owner not in taken and owner != mine
        ]
        return self._cluster.set_managed_fields(live, [*other_entries, apply_owner.entry])

    def _build_state(self, inputs: Properties, live: Manifest, olds: Properties) -> Properties:
        """Return the state: the live object together with the inputs."""
        return live | {key: value for key, value in self._state(inputs, olds).items() if key.startswith("__")}


@dataclass(frozen=True)
class Upserting(Applying):
    """Apply objects to a cluster; a create applies to an object that exists."""

    def _create(self, inputs: Properties, manager: str, *, dry_run: bool) -> Manifest:
        """Create or change an object by server-side apply."""
        force = dry_run or self._is_force_set(inputs)
        return self._cluster.apply(inputs, manager, force=force, dry_run=dry_run)


def leave_ignored_fields(manifest: Manifest, live: Manifest, manager: str, ignored_paths: Sequence[str]) -> Manifest:
    """Return a manifest that does not change the live values at ignored paths.

    A field that another manager alone owns is removed. Any other field is set to its live value, because an apply
    without it would delete it. As in the real plugin, a path that leads through a list has no effect.
    """
    result, owners = deepcopy(manifest), field_owners(live)
    for keys in (path.split(".") for path in ignored_paths):
        path = tuple(f"f:{key}" for key in keys)
        managers = {owner.manager for owner in owners if any(field[: len(path)] == path for field in owner.fields)}
        if managers and manager not in managers:
            if is_object(parent := _find_value(result, keys[:-1])):
                parent.pop(keys[-1], None)
        elif (live_value := _find_value(live, keys)) is not None:
            parent = result
            for key in keys[:-1]:
                parent = parent.setdefault(key, {})
            parent[keys[-1]] = deepcopy(live_value)
    return result


def _find_value(manifest: Any, keys: Sequence[str]) -> Any:
    value = manifest
    for key in keys:
        value = value.get(key) if is_object(value) else None
    return value


def select_set_fields(live: Any, manifest: Any) -> Any:
    """Return the part of a live object that a manifest sets."""
    if is_object(live) and is_object(manifest):
        return {key: select_set_fields(live[key], manifest[key]) for key in manifest if key in live}
    if is_array(live) and is_array(manifest):
        return [select_set_fields(item, wanted_item) for item, wanted_item in zip(live, manifest, strict=False)]
    return deepcopy(live)


def _drop_read_only(live: Manifest) -> Manifest:
    read_only = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
    return live | {"metadata": {key: value for key, value in live["metadata"].items() if key not in read_only}}


def _describe(refused: RefusedByClusterError, manager: str) -> str:
    if refused.reason != "Conflict":
        return str(refused)
    return (
        f"server-side apply field conflict detected, see {_TROUBLESHOOTING} for troubleshooting help\n"
        f'The resource managed by field manager "{manager}" had an apply conflict: {refused}'
    )
