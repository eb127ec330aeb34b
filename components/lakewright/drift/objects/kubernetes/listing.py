"""Find the objects of a cluster that may differ from their states, from one list per kind for all stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakewright_engine.model.resources import ResourceState

from lakewright.drift.objects.kubernetes.cluster import Cluster, Collection, ListDeniedError
from lakewright.drift.objects.kubernetes.comparison import is_as_declared
from lakewright.drift.objects.kubernetes.health import is_healthy, needs_endpoints
from lakewright.drift.session import ScanSession, StackResource
from lakewright.validation.documents import mapping_of

Place = tuple[str, str]
"""Namespace, empty for none, and name of an object."""
Document = Mapping[str, Any]

_DEFAULT_NAMESPACE = "default"


@dataclass
class _KindOfStacks:
    """The resources of one kind in all stacks, by the place of their object."""

    api_version: str
    kind: str
    resources: dict[Place, list[StackResource]] = field(default_factory=lambda: defaultdict[Place, Any](list))


def may_differ(resources: Sequence[StackResource], cluster: Cluster, session: ScanSession) -> list[StackResource]:
    """Return the resources that the provider must compare: all that are not surely as declared.

    A kind that the cluster does not let list is compared by the provider, which reads each object.

    Args:
        resources: Resources of any kinds on the cluster.
        cluster: The cluster.
        session: The run; it lists the kinds concurrently.

    Raises:
        ClusterUnreachableError: The cluster does not answer.
    """
    kinds: dict[tuple[str, str], _KindOfStacks] = {}
    for resource in resources:
        api_version, kind = _kind_of(resource.state)
        group = kinds.setdefault((api_version, kind), _KindOfStacks(api_version, kind))
        group.resources[_place_of(resource.state)].append(resource)
    found_by_kind = session.map(lambda kind: _of_kind(kind, cluster), kinds.values())
    return [resource for found in found_by_kind for resource in found]


def _of_kind(kind: _KindOfStacks, cluster: Cluster) -> list[StackResource]:
    left = dict(kind.resources)
    collection = cluster.collection(kind.api_version, kind.kind)
    if collection is None:
        return [resource for resources in left.values() for resource in resources]
    services: dict[Place, Document] = {}
    flagged: list[StackResource] = []
    for item in _list_objects(kind, collection, cluster):
        place = _live_place(item)
        if (resources := left.pop(place, None)) is None:
            continue
        live = {**item, "apiVersion": kind.api_version, "kind": kind.kind}
        if needs_endpoints(live):
            services[place] = live
            left[place] = resources
            continue
        flagged += [resource for resource in resources if not _is_same(resource.state, live, None)]
    if services:
        left = _without_healthy_services(left, services, cluster)
    return flagged + [resource for resources in left.values() for resource in resources]


def _without_healthy_services(
    left: Mapping[Place, list[StackResource]], services: Mapping[Place, Document], cluster: Cluster
) -> dict[Place, list[StackResource]]:
    """Return the resources that are left when Services that surely are as declared are removed."""
    read = Collection("/api/v1", "endpoints", is_namespaced=True)
    try:
        listed = _list_everywhere(read, {namespace for namespace, _ in services}, cluster)
        endpoints = {_live_place(item): item for item in listed if _live_place(item) in services}
    except ListDeniedError:
        return {**left}
    return {
        place: resources
        for place, resources in left.items()
        if place not in services
        or not all(_is_same(resource.state, services[place], endpoints.get(place)) for resource in resources)
    }


def _is_same(state: ResourceState, live: Document, endpoints: Document | None) -> bool:
    return (
        not state.init_errors
        and not mapping_of(live.get("metadata")).get("deletionTimestamp")
        and is_as_declared(state, live)
        and is_healthy(live, state.inputs, endpoints)
    )


def _list_objects(kind: _KindOfStacks, collection: Collection, cluster: Cluster) -> list[Document]:
    """Return the listed objects of a kind; none if the cluster refuses to list them."""
    namespaces = {namespace for namespace, _ in kind.resources} if collection.is_namespaced else {""}
    states = [resource.state for resources in kind.resources.values() for resource in resources]
    try:
        return _list_everywhere(collection, namespaces, cluster, labels=common_labels(states))
    except ListDeniedError:
        return []


def _list_everywhere(
    collection: Collection, namespaces: set[str], cluster: Cluster, *, labels: str = ""
) -> list[Document]:
    """Return the objects of all namespaces by one list; where that is denied, by a list per namespace.

    Raises:
        ListDeniedError: The cluster refused the lists of all namespaces.
    """
    try:
        if len(namespaces) > 1 or not collection.is_namespaced:
            return [*cluster.objects(collection, labels=labels)]
    except ListDeniedError:
        if not collection.is_namespaced:
            raise
    found: list[Document] = []
    denied: ListDeniedError | None = None
    answered = False
    for namespace in sorted(namespaces):
        try:
            found += cluster.objects(collection, namespace=namespace, labels=labels)
            answered = True
        except ListDeniedError as error:
            denied = error
    if denied is not None and not answered:
        raise denied
    return found


def common_labels(states: Sequence[ResourceState]) -> str:
    """Return a selector of the labels that all resources declare with the same value; empty if there is none.

    An object whose labels were changed is not in such a list; the provider then finds what differs.
    """
    labels = [mapping_of(mapping_of(state.inputs.get("metadata")).get("labels")) for state in states]
    first = labels[0] if labels else mapping_of(None)
    common = [
        f"{key}={value}"
        for key, value in sorted(first.items())
        if isinstance(value, str) and value and all(other.get(key) == value for other in labels)
    ]
    return ",".join(common)


def _kind_of(state: ResourceState) -> tuple[str, str]:
    """Return API version and kind of a resource's object."""
    _, version, kind = state.type.split(":")
    declared = state.inputs.get("apiVersion"), state.inputs.get("kind")
    if isinstance(declared[0], str) and isinstance(declared[1], str):
        return declared[0], declared[1]
    return version.removeprefix("core/"), kind


def _place_of(state: ResourceState) -> Place:
    namespace, _, name = state.id.rpartition("/")
    return namespace, name


def _live_place(live: Document) -> Place:
    metadata = mapping_of(live.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name"))
