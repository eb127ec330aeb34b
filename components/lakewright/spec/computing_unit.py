"""A computing unit (CU): a workload on Kubernetes that uses the tenant's warehouses."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from lakewright.names.types import ComputingUnitName
from lakewright.validation.quantity import Cpu, Memory
from lakewright.validation.strict_model import StrictModel

Runtime = Literal["spark", "texera"]


class Size(StrictModel):
    """What a CU may use; requests equal limits."""

    cpu: Cpu = "1"
    memory: Memory = "2Gi"
    scratch: Memory = "10Gi"
    """Disk for temporary files."""
    shm: Memory | None = None
    """Shared memory at /dev/shm; counts as memory."""


def _form(value: object) -> str:
    return "tag:list" if isinstance(value, list) else "tag:all"


Choice = Annotated[
    Annotated[Literal["all"], Tag("tag:all")] | Annotated[list[str], Field(min_length=1), Tag("tag:list")],
    Discriminator(_form),
]


class ComputingUnitSpec(StrictModel):
    """One CU. It is bound to one warehouse when it is made (`warehouse`), or each execution chooses (`warehouses`)."""

    name: ComputingUnitName
    runtime: Runtime
    image: Annotated[str, Field(min_length=1, pattern=r"^\S+$")] | None = None
    """By digest, `NAME@sha256:...`, unless the environment is a trial. Default: its image for the runtime."""
    size: Size = Size()
    warehouse: str | None = None
    """Bound to this warehouse from the start."""
    warehouses: Choice | None = None
    """Chosen by each execution, out of these."""

    def sees(self, all_warehouses: list[str]) -> list[str]:
        """Names of the warehouses that this CU may use, the one it starts with first."""
        if self.warehouse is not None:
            return [self.warehouse]
        return all_warehouses if self.warehouses == "all" else list(self.warehouses or [])
