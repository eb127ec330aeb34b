"""The pods that manifests describe: pods of Deployments, StatefulSets, Jobs and CronJobs, and Pods themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

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
        return [as_mapping(part) for kind in kinds for part in as_list(self.spec.get(kind))]


def list_workloads(manifests: Iterable[Mapping[str, Any]]) -> Iterator[PodWorkload]:
    """Yield the workloads among manifests."""
    for manifest in manifests:
        path = _TEMPLATES.get(str(manifest.get("kind")))
        if path is None:
            continue
        pod = manifest
        for step in path:
            pod = as_mapping(pod.get(step))
        name = as_mapping(manifest.get("metadata")).get("name")
        labels = {key: str(value) for key, value in as_mapping(as_mapping(pod.get("metadata")).get("labels")).items()}
        yield PodWorkload(f"{manifest['kind']} {name}", labels, as_mapping(pod.get("spec")))
