"""Settings of pods and Services that clusters require: scheduling, registries, labels, and further parts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from lakewright.kubernetes.settings import LabelKey
from lakewright.platform_stack.settings.types import Count, ObjectName, Text
from lakewright.validation.strict_model import StrictModel


class Toleration(StrictModel):
    """A taint of nodes that pods tolerate."""

    key: Text | None = None
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


class PodSettings(StrictModel):
    """Where pods run, and what they are labelled with."""

    node_selector: dict[LabelKey, str] = {}
    tolerations: list[Toleration] = []
    affinity: dict[str, Any] = {}
    """Affinity as Kubernetes has it. Default: replicas prefer different nodes."""
    priority_class: Text | None = None
    image_pull_secrets: list[ObjectName] = []
    """Secrets of the namespace with credentials of image registries."""
    labels: dict[LabelKey, str] = {}
    """Further labels of pods. Labels of the stack cannot be replaced."""
    annotations: dict[str, str] = {}
    min_available: Count | None = None
    """Replicas that a drain leaves running. Default: all but one."""


class ExtraPodParts(StrictModel):
    """Parts of the server's pods, as Kubernetes has them."""

    volumes: list[dict[str, Any]] = []
    volume_mounts: list[dict[str, Any]] = []
    """Mounts of the server's container."""
    containers: list[dict[str, Any]] = []
    """Further containers, such as a proxy to the database. Pod Security `restricted` applies to them."""
    env_from: list[dict[str, Any]] = []
    """Sources of further variables of the server. Variables of the stack win."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        taken = {"tmp", "ca", "database-ca", "secrets"} & {str(volume.get("name")) for volume in self.volumes}
        if taken:
            raise ValueError(f"expected volumes with other names than the stack's; found {', '.join(sorted(taken))}")
        return self


class ServiceSettings(StrictModel):
    """The Service of a component."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    annotations: dict[str, str] = {}
