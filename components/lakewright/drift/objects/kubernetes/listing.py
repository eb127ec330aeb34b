"""Find the objects of a cluster that may differ from their states, from one list per kind for all stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakewright_engine.model.resources import ResourceState

from lakewright.drift.objects.kubernetes.cluster import Collection, ListDeniedError, LiveCluster
from lakewright.drift.objects.kubernetes.comparison import is_as_declared
from lakewright.drift.objects.kubernetes.health import is_healthy, needs_endpoints
from lakewright.drift.session import ScanSession, StackResource
from lakewright.validation.documents import as_mapping

ObjectName = tuple[str, str]
"""Namespace, empty for none, and name of an object."""
Document = Mapping[str, Any]

_DEFAULT_NAMESPACE = "default"


@dataclass
class _KindOfStacks:
    """The resources of a kind in all stacks, by the name of their object."""

    api_version: str
    kind: str
    resources: dict[ObjectName, list[StackResource]] = field(default_factory=lambda: defaultdict[ObjectName, Any](list))


def may_differ(resources: Sequence[StackResource], cluster: LiveCluster, session: ScanSession) -> list[StackResource]:
    """Return the resources that the provider must compare: all that are not surely as declared.

    A kind that the cluster does not let list is compared by the provider, which reads each object.

    Args:
        resources: Resources of any kinds on the cluster.
        cluster: The cluster.
        session: The run; it lists the kinds concurrently.

    Raises:
        ClusterUnreachableError: The cluster does not respond.
    """
    kinds: dict[tuple[str, str], _KindOfStacks] = {}
    for resource in resources:
        api_version, kind = _get_kind(resource.state)
        group = kinds.setdefault((api_version, kind), _KindOfStacks(api_version, kind))
        group.resources[_get_name(resource.state)].append(resource)
    candidates_by_kind = session.map(lambda kind: _find_candidates(kind, cluster), kinds.values())
    return [resource for candidates in candidates_by_kind for resource in candidates]


def _find_candidates(kind: _KindOfStacks, cluster: LiveCluster) -> list[StackResource]:
    remaining = dict(kind.resources)
    collection = cluster.collection(kind.api_version, kind.kind)
    if collection is None:
        return [resource for resources in remaining.values() for resource in resources]
    services: dict[ObjectName, Document] = {}
    flagged: list[StackResource] = []
    for item in _list_objects(kind, collection, cluster):
        object_name = _get_live_name(item)
        if (resources := remaining.pop(object_name, None)) is None:
            continue
        live = {**item, "apiVersion": kind.api_version, "kind": kind.kind}
        if needs_endpoints(live):
            services[object_name] = live
            remaining[object_name] = resources
            continue
        flagged += [resource for resource in resources if not _is_same(resource.state, live, None)]
    if services:
        remaining = _drop_healthy_services(remaining, services, cluster)
    return flagged + [resource for resources in remaining.values() for resource in resources]


def _drop_healthy_services(
    remaining: Mapping[ObjectName, list[StackResource]], services: Mapping[ObjectName, Document], cluster: LiveCluster
) -> dict[ObjectName, list[StackResource]]:
    """Return the resources without Services that surely are as declared."""
    read = Collection("/api/v1", "endpoints", is_namespaced=True)
    try:
        items = _list_everywhere(read, {namespace for namespace, _ in services}, cluster)
        endpoints = {_get_live_name(item): item for item in items if _get_live_name(item) in services}
    except ListDeniedError:
        return {**remaining}
    return {
        object_name: resources
        for object_name, resources in remaining.items()
        if object_name not in services
        or not all(
            _is_same(resource.state, services[object_name], endpoints.get(object_name)) for resource in resources
        )
    }


def _is_same(state: ResourceState, live: Document, endpoints: Document | None) -> bool:
    return (
        not state.init_errors
        and not as_mapping(live.get("metadata")).get("deletionTimestamp")
        and is_as_declared(state, live)
        and is_healthy(live, state.inputs, endpoints)
    )


def _list_objects(kind: _KindOfStacks, collection: Collection, cluster: LiveCluster) -> list[Document]:
    """Return the listed objects of a kind; none if the cluster refuses to list them."""
    namespaces = {namespace for namespace, _ in kind.resources} if collection.is_namespaced else {""}
    states = [resource.state for resources in kind.resources.values() for resource in resources]
    try:
        return _list_everywhere(collection, namespaces, cluster, labels=find_common_labels(states))
    except ListDeniedError:
        return []


def _list_everywhere(
    collection: Collection, namespaces: set[str], cluster: LiveCluster, *, labels: str = ""
) -> list[Document]:
    """Return the objects of all namespaces by a single list; where it is denied, by a list per namespace.

    Raises:
        ListDeniedError: The cluster refused the lists of all namespaces.
    """
    try:
        if len(namespaces) > 1 or not collection.is_namespaced:
            return [*cluster.objects(collection, labels=labels)]
    except ListDeniedError:
        if not collection.is_namespaced:
            raise
    objects: list[Document] = []
    denied: ListDeniedError | None = None
    is_any_listed = False
    for namespace in sorted(namespaces):
        try:
            objects += cluster.objects(collection, namespace=namespace, labels=labels)
            is_any_listed = True
        except ListDeniedError as error:
            denied = error
    if denied is not None and not is_any_listed:
        raise denied
    return objects


def find_common_labels(states: Sequence[ResourceState]) -> str:
    """Return a selector of the labels that all resources declare with the same value; empty if there is none.

    An object whose labels were changed is not in such a list; the provider then finds what differs.
    """
    labels = [as_mapping(as_mapping(state.inputs.get("metadata")).get("labels")) for state in states]
    first = labels[0] if labels else as_mapping(None)
    common = [
        f"{key}={value}"
        for key, value in sorted(first.items())
        if isinstance(value, str) and value and all(other.get(key) == value for other in labels)
    ]
    return ",".join(common)


def _get_kind(state: ResourceState) -> tuple[str, str]:
    """Return API version and kind of a resource's object."""
    _, version, kind = state.type.split(":")
    declared_kind = state.inputs.get("apiVersion"), state.inputs.get("kind")
    if isinstance(declared_kind[0], str) and isinstance(declared_kind[1], str):
        return declared_kind[0], declared_kind[1]
    return version.removeprefix("core/"), kind


def _get_name(state: ResourceState) -> ObjectName:
    namespace, _, name = state.id.rpartition("/")
    return namespace, name


def _get_live_name(live: Document) -> ObjectName:
    metadata = as_mapping(live.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name"))
