"""Settings of the platform's pods and Services: labels, further parts, and types of Services."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from lakewright.kubernetes.field_types import LabelKey
from lakewright.kubernetes.pod_placement import PodPlacement
from lakewright.platform_stack.settings.types import Count
from lakewright.validation.strict_model import StrictModel


class PodSettings(PodPlacement):
    """Where pods run, and what they are labelled with."""

    affinity: dict[str, Any] = {}
    """Affinity as Kubernetes has it. Default: replicas prefer different nodes."""
    labels: dict[LabelKey, str] = {}
    """Further labels of pods. Labels of the stack cannot be replaced."""
    min_available: Count | None = None
    """Replicas that a drain leaves running, fewer than all. Default: all but one."""


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

    @property
    def sidecars(self) -> list[dict[str, Any]]:
        """Init containers that run as long as the stack's containers."""
        return [container for container in self.init_containers if container.get("restartPolicy") == "Always"]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _check_new_names("volumes", self.volumes, ["tmp", "ca", "database-ca", "secrets"])
        containers = ["lakekeeper", "wait-for-migration", "wait-for-database", "migrate"]
        containers = _check_new_names("init_containers", self.init_containers, containers)
        _check_new_names("containers", self.containers, containers)
        return self


def _check_new_names(field: str, parts: list[dict[str, Any]], taken: list[str]) -> list[str]:
    """Return the taken names and the parts' names. Raises ValueError for a part without a name or with a taken name."""
    names = list(taken)
    for part in parts:
        name = part.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"{field}: expected a `name` of each part; found {name!r}")
        if name in names:
            raise ValueError(f"{field}: expected names that the pods do not have yet; found {name}")
        names.append(name)
    return names


class ServiceSettings(StrictModel):
    """The Service of a component."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    annotations: dict[str, str] = {}
