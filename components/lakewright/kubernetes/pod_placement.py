"""Settings of pods that clusters require: nodes, priority, registries and annotations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lakewright.kubernetes.field_types import LabelKey, LabelValue, ObjectName
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

    @model_validator(mode="after")
    def _check_fields(self) -> Toleration:
        """Refuse what Kubernetes refuses."""
        if self.key is None and self.operator == "Equal":
            raise ValueError("expected `key`, or `operator: Exists` for each taint")
        if self.value is not None and self.operator == "Exists":
            raise ValueError("expected no `value` with `operator: Exists`")
        if self.seconds is not None and self.effect != "NoExecute":
            raise ValueError("expected `effect: NoExecute` with `seconds`")
        return self

    def to_manifest(self) -> dict[str, Any]:
        """Return the toleration as Kubernetes has it."""
        fields = self.model_dump(exclude_none=True)
        if "seconds" in fields:
            fields["tolerationSeconds"] = fields.pop("seconds")
        return fields


class PodPlacement(StrictModel):
    """Where pods run, and how the cluster handles them."""

    node_selector: dict[LabelKey, LabelValue | Literal[""]] = {}
    tolerations: list[Toleration] = []
    affinity: dict[str, Any] = {}
    """Affinity as Kubernetes has it."""
    priority_class: ObjectName | None = None
    image_pull_secrets: list[ObjectName] = []
    """Secrets of the namespace with credentials of image registries."""
    annotations: dict[LabelKey, str] = {}

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
