"""Objects of Kubernetes: one list per kind and cluster, then the provider's comparison of objects that may differ.

Manifests in a folder (`render_to`) are never drift, as for `preview --refresh`: there the state is the truth.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence

from lakewright_engine.model.resources import Properties

from lakewright.drift.actors.managed_fields import actor_of_field
from lakewright.drift.model import Finding
from lakewright.drift.objects.kubernetes.cluster import ClusterUnreachableError, open_cluster
from lakewright.drift.objects.kubernetes.listing import may_differ
from lakewright.drift.objects.provider_reads import (
    compare_by_providers,
    is_compared,
    provider_settings,
    report_unchecked,
)
from lakewright.drift.session import ScanSession, StackResource

_RENDERS = "renderYamlToDirectory"
_OBJECT_PARTS = 3
_PROVIDER_ONLY_SETTINGS = ("cluster", "deleteUnreachable", "skipUpdateUnreachable")
"""Settings of a provider that change where or how it reads, which only the provider knows."""
_PACKAGES = ("kubernetes:helm.sh/", "kubernetes:yaml/", "kubernetes:kustomize/")
"""Types without an object in the API."""


class KubernetesScanner:
    """Compares objects of Kubernetes clusters with states."""

    def scan(self, resources: Sequence[StackResource], session: ScanSession) -> Iterable[Finding]:
        """Return the differences that `preview --refresh` of each stack finds."""
        candidates: list[StackResource] = []
        clusters: dict[tuple[str, str], list[StackResource]] = defaultdict(list)
        for resource in filter(is_compared, resources):
            settings = provider_settings(resource)
            if settings is not None and settings.get(_RENDERS):
                continue
            if settings is None or not _is_listed(resource, settings):
                candidates.append(resource)
                continue
            kubeconfig = str(settings.get("kubeconfig") or os.environ.get("KUBECONFIG") or "")
            clusters[kubeconfig, str(settings.get("context") or "")].append(resource)
        for (kubeconfig, context), members in clusters.items():
            try:
                candidates += may_differ(members, open_cluster(kubeconfig, context, session), session)
            except ClusterUnreachableError as error:
                yield from report_unchecked(members, f"Kubernetes cluster{f' {context}' if context else ''}: {error}")
        yield from compare_by_providers(candidates, session, actor_of_field)


def _is_listed(resource: StackResource, settings: Properties) -> bool:
    """Return whether an object can be compared with a list of its kind."""
    kind = resource.state.type
    return (
        len(kind.split(":")) == _OBJECT_PARTS
        and not kind.startswith(_PACKAGES)
        and not kind.endswith(("List", "Patch"))
        and not any(settings.get(key) for key in _PROVIDER_ONLY_SETTINGS)
    )
