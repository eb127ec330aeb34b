"""The objects of a cluster, in memory, with the owners of their fields. Every change makes a new resource version.

The API server's defaults (`imagePullPolicy`, `strategy` and such) are not filled in: no manifest of a stack sends them.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

from lakewright_sandbox.cluster import pods, status
from lakewright_sandbox.cluster.fields import Json, values_by_path
from lakewright_sandbox.cluster.kinds import KINDS, ObjectKind
from lakewright_sandbox.cluster.ownership import ApplyConflictError, Owner, apply, update
from lakewright_sandbox.cluster.schema import Path

Key = tuple[str, str, str]


class Objects:
    """Objects by kind, namespace and name."""

    def __init__(self) -> None:
        """Create the namespaces that every cluster has."""
        self._lock = threading.RLock()
        self._kept: dict[Key, Json] = {}
        self._version = 0
        for name in ("default", "kube-system"):
            self._namespace(name)

    def _namespace(self, name: str) -> None:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.create(KINDS["v1", "namespaces"], "", manifest, "kube-apiserver")

    def get(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """Return an object. Raises 404."""
        with self._lock:
            return copy.deepcopy(self._require(kind, namespace, name))

    def has(self, kind: ObjectKind, namespace: str, name: str) -> bool:
        """Return whether an object exists."""
        with self._lock:
            return (kind.resource, namespace, name) in self._kept

    def items(self, kind: ObjectKind, namespace: str) -> list[Json]:
        """Return the objects of a kind, in one namespace or in all."""
        with self._lock:
            entries = [(key, live) for key, live in self._kept.items() if key[0] == kind.resource]
            return copy.deepcopy([live for key, live in entries if namespace in ("", key[1])])

    def create(self, kind: ObjectKind, namespace: str, manifest: Json, manager: str, *, dry_run: bool = False) -> Json:
        """Create an object. Raises 404 for its namespace, 409 where it exists."""
        with self._lock:
            name = str(manifest["metadata"]["name"])
            if (kind.resource, namespace, name) in self._kept:
                raise status.already_exists(kind, name)
            if kind.kind == "ResourceQuota":
                pods.check_quota(manifest)
            if kind.kind == "Pod":
                quotas = self.items(KINDS["v1", "resourcequotas"], namespace)
                pods.admit_pod(manifest, quotas, self.items(kind, namespace))
                manifest = pods.reset_status(manifest)
            new_manifest = update(None, manifest, _updater(kind, manager))
            stored_object = self._keep(kind, namespace, None, new_manifest, dry_run=dry_run)
            if kind.kind == "Namespace" and not dry_run:
                account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
                self.create(KINDS["v1", "serviceaccounts"], name, account, "kube-controller-manager")
            return stored_object

    def apply(
        self, kind: ObjectKind, namespace: str, manifest: Json, manager: str, *, force: bool, dry_run: bool = False
    ) -> Json:
        """Create or change an object by server-side apply. Raises 409 with each conflict."""
        with self._lock:
            live = self._kept.get((kind.resource, namespace, str(manifest["metadata"]["name"])))
            applier = Owner(manager, "Apply", kind.api_version, time=_now())
            try:
                new_manifest = apply(live, manifest, applier, force=force)
            except ApplyConflictError as error:
                raise status.conflict(error) from None
            return self._keep(kind, namespace, live, new_manifest, dry_run=dry_run)

    def change(
        self,
        kind: ObjectKind,
        target: tuple[str, str],
        build: Callable[[Json], Json],
        manager: str,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Json:
        """Change an object at (namespace, name) by an update or a patch. Raises 404 and 409."""
        with self._lock:
            live = self._require(kind, *target)
            new = build(copy.deepcopy(live))
            if new["metadata"].get("resourceVersion") not in (None, live["metadata"]["resourceVersion"]):
                raise status.build_version_conflict(kind, target[1])
            if new["metadata"].get("managedFields") == live["metadata"]["managedFields"]:
                new = update(live, new, _updater(kind, manager, subresource))
            return self._keep(kind, target[0], live, new, dry_run=dry_run)

    def delete(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """Delete an object, and with a namespace everything in it. Raises 404."""
        with self._lock:
            deleted_object = self._require(kind, namespace, name)
            del self._kept[kind.resource, namespace, name]
            if kind.kind == "Namespace":
                self._kept = {key: live for key, live in self._kept.items() if key[1] != name}
            return deleted_object

    def _require(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        if (live_object := self._kept.get((kind.resource, namespace, name))) is None:
            raise status.not_found(kind, name)
        return live_object

    def _keep(self, kind: ObjectKind, namespace: str, live: Json | None, new_manifest: Json, *, dry_run: bool) -> Json:
        name = str(new_manifest["metadata"]["name"])
        if kind.namespaced and ("namespaces", "", namespace) not in self._kept:
            raise status.ApiStatusError(404, f'namespaces "{namespace}" not found')
        before = live or {}
        for key in kind.immutable:
            if live and new_manifest.get("spec", {}).get(key) != before["spec"].get(key):
                raise status.immutable(kind, name, key, new_manifest.get("spec", {}).get(key))
        stored_object = copy.deepcopy(new_manifest)
        metadata: dict[str, Any] = stored_object["metadata"]
        if kind.namespaced:
            metadata["namespace"] = namespace
        old = cast(Json, before.get("metadata", {}))
        metadata["uid"] = old.get("uid") or str(uuid.uuid4())
        metadata["creationTimestamp"] = old.get("creationTimestamp") or _now()
        changed = live is None or _spec(live) != _spec(stored_object)
        metadata["generation"] = int(old.get("generation", 0)) + changed
        if live and {**stored_object, "metadata": {**metadata, "resourceVersion": old["resourceVersion"]}} == live:
            return copy.deepcopy(live)
        if not dry_run:
            self._version += 1
            metadata["resourceVersion"] = str(self._version)
            self._kept[kind.resource, namespace, name] = stored_object
        return copy.deepcopy(stored_object)


def _spec(manifest: Json) -> dict[Path, Any]:
    return {
        path: value for path, value in values_by_path(manifest).items() if path[0] not in ("f:metadata", "f:status")
    }


def _updater(kind: ObjectKind, manager: str, subresource: str = "") -> Owner:
    return Owner(manager, "Update", kind.api_version, subresource, _now())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
