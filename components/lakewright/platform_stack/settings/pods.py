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
    """Parts of the server's pods, as Kubernetes has them. Pods of the migration get all but `containers`."""

    volumes: list[dict[str, Any]] = []
    volume_mounts: list[dict[str, Any]] = []
    """Mounts of the stack's containers: of the server, the migration, and the containers that wait for the database."""
    init_containers: list[dict[str, Any]] = []
    """Containers that start before the stack's. With `restartPolicy: Always` they run until the stack's containers have
    ended, such as a proxy to the database. Pod Security `restricted` applies to them."""
    containers: list[dict[str, Any]] = []
    """Further containers beside the server. They start after the wait for the database. Pod Security `restricted`
    applies to them."""
    env_from: list[dict[str, Any]] = []
    """Sources of further variables of the stack's containers. Variables of the stack win."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _refuse_names("volumes", self.volumes, {"tmp", "ca", "database-ca", "secrets"})
        containers = {"lakekeeper", "wait-for-migration", "wait-for-database", "migrate"}
        _refuse_names("init_containers", self.init_containers, containers)
        _refuse_names("containers", self.containers, containers | {_read_name(part) for part in self.init_containers})
        return self


def _refuse_names(field: str, parts: list[dict[str, Any]], taken: set[str]) -> None:
    """Raise ValueError for parts with names that the pods have already."""
    if used := {_read_name(part) for part in parts} & taken:
        raise ValueError(f"{field}: expected names that the pods do not have yet; found {', '.join(sorted(used))}")


def _read_name(part: dict[str, Any]) -> str:
    return str(part.get("name"))


class ServiceSettings(StrictModel):
    """The Service of a component."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    annotations: dict[str, str] = {}
