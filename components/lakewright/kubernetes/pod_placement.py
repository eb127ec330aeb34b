"""Settings of pods that clusters require: nodes, priority, registries and annotations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from lakewright.kubernetes.field_types import LabelKey, ObjectName
from lakewright.validation.strict_model import StrictModel

_Text = Annotated[str, Field(min_length=1)]


class Toleration(StrictModel):
    """A taint of nodes that pods tolerate."""

    key: _Text | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds that pods remain on a node with the taint; with the effect NoExecute only."""

    def to_manifest(self) -> dict[str, Any]:
        """Return the toleration as Kubernetes has it."""
        fields = self.model_dump(exclude_none=True)
        if "seconds" in fields:
            fields["tolerationSeconds"] = fields.pop("seconds")
        return fields


class PodPlacement(StrictModel):
    """Where pods run, and how the cluster handles them."""

    node_selector: dict[LabelKey, str] = {}
    tolerations: list[Toleration] = []
    affinity: dict[str, Any] = {}
    """Affinity as Kubernetes has it."""
    priority_class: _Text | None = None
    image_pull_secrets: list[ObjectName] = []
    """Secrets of the namespace with credentials of image registries."""
    annotations: dict[str, str] = {}

    def to_metadata_fields(self) -> dict[str, dict[str, str]]:
        """Return the fields of a pod's metadata that are set."""
        return {"annotations": dict(self.annotations)} if self.annotations else {}

    def to_pod_fields(self) -> dict[str, Any]:
        """Return the fields of a pod's spec that are set, as Kubernetes has them."""
        fields: dict[str, Any] = {
            "nodeSelector": self.node_selector,
            "tolerations": [toleration.to_manifest() for toleration in self.tolerations],
            "affinity": self.affinity,
            "priorityClassName": self.priority_class,
            "imagePullSecrets": [{"name": name} for name in self.image_pull_secrets],
        }
        return {name: value for name, value in fields.items() if value}
