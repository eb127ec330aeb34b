"""The pods that manifests describe: pods of Deployments, StatefulSets, Jobs and CronJobs, and Pods themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.validation.documents import list_of, mapping_of

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "Pod": (),
}
"""Path of the pod in a manifest, by kind."""


@dataclass(frozen=True)
class PodWorkload:
    """A pod, or an object that makes pods."""

    title: str
    """Kind and name."""
    labels: Mapping[str, str]
    """Labels of the pods."""
    spec: Mapping[str, Any]
    """Spec of the pods."""

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """Return all containers."""
        kinds = ("initContainers", "containers", "ephemeralContainers")
        return [mapping_of(part) for kind in kinds for part in list_of(self.spec.get(kind))]


def list_workloads(manifests: Iterable[Mapping[str, Any]]) -> Iterator[PodWorkload]:
    """Yield the workloads among manifests."""
    for manifest in manifests:
        path = _TEMPLATES.get(str(manifest.get("kind")))
        if path is None:
            continue
        pod = manifest
        for step in path:
            pod = mapping_of(pod.get(step))
        name = mapping_of(manifest.get("metadata")).get("name")
        labels = {key: str(value) for key, value in mapping_of(mapping_of(pod.get("metadata")).get("labels")).items()}
        yield PodWorkload(f"{manifest['kind']} {name}", labels, mapping_of(pod.get("spec")))
