"""Find objects in the Kubernetes namespaces of tenants that no stack has and no controller owns."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakewright.discovery.unmanaged.finding import UnmanagedObject
from lakewright.drift.detection.steps import DriftRun
from lakewright.drift.model import Difference, Finding, ScanProblem
from lakewright.drift.objects.kubernetes.cluster import (
    ClusterUnreachableError,
    Collection,
    ListDeniedError,
    LiveCluster,
    open_cluster,
)
from lakewright.drift.objects.provider_reads import provider_settings
from lakewright.drift.session import StackResource
from lakewright.names.object_names import COMPUTE_LIMIT
from lakewright.ownership.limit_mark import COMPUTE_PART
from lakewright.restrictions.reading import find_record, read_stack
from lakewright.validation.documents import as_list, as_mapping, as_text

_NAMESPACE = "kubernetes:core/v1:Namespace"
_RENDERS = "renderYamlToDirectory"

KINDS: tuple[tuple[str, str], ...] = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("networking.k8s.io/v1", "Ingress"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
)
"""Kinds that count. Secrets do not: other tools provide them."""

_BUILT_IN_OBJECTS = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
"""Objects that Kubernetes makes in each namespace."""
_QUOTA = ("ResourceQuota", COMPUTE_LIMIT)
"""The quota that `lakewright enforce-limits` makes."""


def find_unmanaged_objects(run: DriftRun) -> Iterator[Finding]:
    """Yield the objects without an owner in the namespaces of stacks that are in no stack of the run."""
    resources, session = run.resources, run.session
    managed: dict[tuple[str, str] | None, set[tuple[str, str]]] = defaultdict(set)
    clusters: dict[tuple[str, str], dict[str, StackResource]] = defaultdict(dict)
    managed_uids = {_find_uid(resource.state.outputs) for resource in resources if _is_object(resource)} - {None}
    for resource in filter(_is_object, resources):
        settings = provider_settings(resource)
        object_key = (_get_kind(resource), resource.state.id)
        if settings is None:
            managed[None].add(object_key)
            continue
        cluster_key = _get_cluster(settings)
        managed[cluster_key].add(object_key)
        if resource.state.type == _NAMESPACE and not settings.get(_RENDERS):
            clusters[cluster_key][resource.state.id] = resource
    for (kubeconfig, context), namespaces in clusters.items():
        # An object whose provider is missing may be in any cluster.
        managed_here = managed[kubeconfig, context] | managed[None]
        try:
            cluster = open_cluster(kubeconfig, context, session)
            lists = session.map(lambda kind, c=cluster, n=namespaces: _list_objects(c, *kind, [*n]), KINDS)
            for (version, kind), live_objects in zip(KINDS, lists, strict=True):
                # A provider may reach the same cluster by another kubeconfig or context.
                items = [item for item in live_objects if _find_uid(item) not in managed_uids]
                for finding in _compare_objects(version, kind, items, namespaces, managed_here):
                    yield from _drop_recorded_quota(run, finding)
        except (ClusterUnreachableError, ListDeniedError) as error:
            text = f"namespaces could not be searched for unmanaged objects: {error}"
            stacks = dict.fromkeys(resource.stack for resource in namespaces.values())
            yield from (ScanProblem(stack, text) for stack in stacks)


def _find_uid(body: Mapping[str, Any]) -> str | None:
    return as_text(as_mapping(body.get("metadata")).get("uid"))


def _get_cluster(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kubeconfig and the context of a provider's settings."""
    kubeconfig = settings.get("kubeconfig") or os.environ.get("KUBECONFIG") or ""
    return str(kubeconfig), str(settings.get("context") or "")


def _list_objects(cluster: LiveCluster, version: str, kind: str, namespaces: list[str]) -> list[Mapping[str, Any]]:
    """Return the objects of a kind: one list of the cluster, else a list for each namespace."""
    collection: Collection | None = cluster.collection(version, kind)
    if collection is None:
        return []
    if len(namespaces) > 1:
        try:
            return [*cluster.objects(collection)]
        except ListDeniedError:
            pass
    return [item for namespace in namespaces for item in cluster.objects(collection, namespace=namespace)]


def _drop_recorded_quota(run: DriftRun, finding: Difference) -> Iterator[Finding]:
    """Yield a finding, except the quota of a limit of compute whose enforcement is recorded."""
    if (finding.type.rpartition(":")[2], finding.resource.rpartition("/")[2]) == _QUOTA:
        stack = next(stack for stack in run.stacks if stack.name == finding.stack)
        states = (resource.state for resource in run.resources if resource.stack == stack.name)
        restrictions = read_stack(run.session, stack, find_record(states))
        if restrictions.limits is not None and COMPUTE_PART in restrictions.limits.parts:
            return
        yield from (ScanProblem(stack.name, problem) for problem in restrictions.problems)
    yield finding


def _compare_objects(
    version: str,
    kind: str,
    items: Sequence[Mapping[str, Any]],
    namespaces: Mapping[str, StackResource],
    managed: set[tuple[str, str]],
) -> Iterator[Difference]:
    for item in items:
        metadata = as_mapping(item.get("metadata"))
        namespace, name = str(metadata.get("namespace")), str(metadata.get("name"))
        owner = namespaces.get(namespace)
        if owner is None or as_list(metadata.get("ownerReferences")) or (kind, name) in _BUILT_IN_OBJECTS:
            continue
        object_id = f"{namespace}/{name}"
        if (kind, object_id) not in managed:
            type_ = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
            entry = UnmanagedObject(type_, object_id, as_text(metadata.get("uid")), "object", (kind, object_id))
            yield entry.to_difference(owner.stack, owner.tenant)


def _is_object(resource: StackResource) -> bool:
    return resource.state.type.startswith("kubernetes:")


def _get_kind(resource: StackResource) -> str:
    return resource.state.type.rpartition(":")[2]
