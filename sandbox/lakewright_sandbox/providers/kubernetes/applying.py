"""A configured `kubernetes` provider towards the sandbox's cluster: server-side apply, as the real plugin does it.

After pulumi-kubernetes 4.34: creates are POSTs, updates are applies under a field manager of the resource's own,
previews are dry runs, a refresh compares what the inputs speak of with what is there.
"""
# ruff: noqa: ARG002  The methods' parameters are those that every provider instance gets.

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lakewright_sandbox.cluster.ownership import Owner, owners_of
from lakewright_sandbox.providers.kubernetes.connection import ClusterConnection, RefusedByClusterError
from lakewright_sandbox.providers.kubernetes.manifests import Manifest
from lakewright_sandbox.providers.kubernetes.rendering import Rendering, named, object_id
from lakewright_sandbox.providers.protocol.difference import Difference
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError
from lakewright_sandbox.providers.protocol.properties import Properties, holds_unknown, without_internal
from lakewright_sandbox.providers.protocol.servicer import ReadResult, ResourceRef

_FORCE = "pulumi.com/patchForce"
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
"""Owners whose fields an update takes over without a conflict. `kubectl scale` is another one, by its subresource."""


@dataclass(frozen=True)
class Applying(Rendering):
    """Applies objects to a cluster; with `force`, whoever else owns their fields."""

    connection: ClusterConnection | None = None
    force: bool = False
    plain_text_warning: str | None = None

    def diff(self, of: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties) -> Difference:
        """Compare what is there, as far as the old inputs speak of it, with what is wanted."""
        live = pruned(without_internal(olds), olds.get("__inputs") or old_inputs)
        return super().diff(of, {"__inputs": live}, news, old_inputs)

    def preview_create(self, of: ResourceRef, inputs: Properties) -> Properties:
        """Dry-run a create; what is there already, or whose namespace is still to come, shows as its inputs."""
        if holds_unknown(inputs):
            return inputs
        try:
            return self._kept(inputs, self._cluster.create(inputs, dry_run=True), {})
        except RefusedByClusterError as refused:
            if refused.reason in ("AlreadyExists", "NotFound"):
                return inputs
            raise

    def create(self, of: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Create an object; one that exists is refused."""
        try:
            live = self._cluster.create(inputs, dry_run=False)
        except RefusedByClusterError as refused:
            raise SandboxProviderError(
                f'resource "{of.urn}" was not successfully created by the Kubernetes API server: {refused}'
            ) from refused
        return object_id(live), self._kept(inputs, live, {})

    def read(self, of: ResourceRef, olds: Properties, old_inputs: Properties) -> ReadResult | None:
        """Read an object, and what the inputs speak of as it is there."""
        wanted = old_inputs or named(of)
        live = self._cluster.get(wanted)
        if live is None:
            return None
        inputs = pruned(live, old_inputs) if old_inputs else _without_read_only(live)
        return ReadResult(of.id or object_id(live), self._kept(inputs, live, olds), inputs)

    def preview_update(self, of: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Dry-run an update: conflicts fail the preview already."""
        return news if holds_unknown(news) else self._applied(of, olds, news, dry_run=True)

    def update(self, of: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Apply an object."""
        return self._applied(of, olds, news, dry_run=False)

    def delete(self, of: ResourceRef, olds: Properties) -> None:
        """Delete an object."""
        self._cluster.delete(without_internal(olds))

    @property
    def _cluster(self) -> ClusterConnection:
        if self.connection is None:
            raise SandboxProviderError("the cluster is not known yet, so nothing can be applied to it")
        return self.connection

    def _applied(self, of: ResourceRef, olds: Properties, news: Properties, *, dry_run: bool) -> Properties:
        live = self._cluster.get(news)
        if live is None:
            raise SandboxProviderError(f'update of resource "{of.urn}" failed: {news["metadata"]["name"]} not found')
        state = self._state(news, olds)
        manager = state["__fieldManager"]
        force = self._forces(news, live, dry_run=dry_run)
        if not dry_run:
            self._take_over(live, manager)
        try:
            made = self._cluster.apply(news, manager, force=force, dry_run=dry_run)
        except RefusedByClusterError as refused:
            raise SandboxProviderError(
                _conflict(manager, refused) if refused.reason == "Conflict" else str(refused)
            ) from None
        return self._kept(news, made, olds)

    def _forces(self, news: Manifest, live: Manifest, *, dry_run: bool) -> bool:
        annotations = news["metadata"].get("annotations") or {}
        if self.force or str(annotations.get(_FORCE, "")).lower() == "true" or not owners_of(live):
            return True
        created = (owner.operation == "Update" and owner.manager in _OWN_UPDATES for owner in owners_of(live))
        return dry_run and any(created)

    def _take_over(self, live: Manifest, manager: str) -> None:
        """Make the resource's own manager the owner of what earlier creates and plain `kubectl apply`s own."""
        entries: list[Properties] = live["metadata"]["managedFields"]
        owners = owners_of(live)
        taken = [owner for owner in owners if (owner.manager, owner.operation, owner.subresource) in _TAKEN_OVER]
        if not taken:
            return
        mine = next((owner for owner in owners if owner.manager == manager), None)
        fields = frozenset[tuple[str, ...]]().union(*(owner.fields for owner in [*taken, *([mine] if mine else [])]))
        own = Owner(manager, "Apply", live["apiVersion"], time=taken[0].time, fields=fields)
        rest = [entry for entry, owner in zip(entries, owners, strict=True) if owner not in taken and owner != mine]
        self._cluster.set_managed_fields(live, [*rest, own.entry])

    def _kept(self, inputs: Properties, live: Manifest, olds: Properties) -> Properties:
        """What the state keeps: the live object, and the inputs beside it."""
        return live | {key: value for key, value in self._state(inputs, olds).items() if key.startswith("__")}


def pruned(live: Any, wanted: Any) -> Any:
    """Return what is there of what a manifest speaks of; what others added beside it is not shown."""
    if isinstance(live, dict) and isinstance(wanted, dict):
        return {key: pruned(live[key], wanted[key]) for key in wanted if key in live}
    if isinstance(live, list) and isinstance(wanted, list):
        return [pruned(item, wish) for item, wish in zip(live, wanted, strict=False)]
    return deepcopy(live)


def _without_read_only(live: Manifest) -> Manifest:
    read_only = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
    return live | {"metadata": {key: value for key, value in live["metadata"].items() if key not in read_only}}


def _conflict(manager: str, refused: RefusedByClusterError) -> str:
    return (
        f"server-side apply field conflict detected, see {_TROUBLESHOOTING} for troubleshooting help\n"
        f'The resource managed by field manager "{manager}" had an apply conflict: {refused}'
    )
