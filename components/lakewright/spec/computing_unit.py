"""A computing unit (CU): a workload on Kubernetes that uses the tenant's warehouses."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from lakewright.names.types import ComputingUnitName
from lakewright.validation.quantity import Cpu, Memory
from lakewright.validation.strict_model import StrictModel

Runtime = Literal["spark", "texera"]


class Size(StrictModel):
    """Resources of a CU; requests equal limits."""

    cpu: Cpu = "1"
    memory: Memory = "2Gi"
    scratch: Memory = "10Gi"
    """Disk for temporary files."""
    shm: Memory | None = None
    """Shared memory at /dev/shm; counts as memory."""


def _form(value: object) -> str:
    return "tag:list" if isinstance(value, list) else "tag:all"


WarehouseChoice = Annotated[
    Annotated[Literal["all"], Tag("tag:all")] | Annotated[list[str], Field(min_length=1), Tag("tag:list")],
    Discriminator(_form),
]


class ComputingUnitSpec(StrictModel):
    """A CU. It is bound to one warehouse (`warehouse`), or each execution chooses one (`warehouses`)."""

    name: ComputingUnitName
    runtime: Runtime
    image: Annotated[str, Field(min_length=1, pattern=r"^\S+$")] | None = None
    """Image by digest, `NAME@sha256:...`, unless the environment is a trial. Default: the environment's image for the
    runtime."""
    size: Size = Size()
    warehouse: str | None = None
    """Warehouse that the CU is bound to."""
    warehouses: WarehouseChoice | None = None
    """Warehouses that each execution chooses from."""

    def visible_warehouses(self, all_warehouses: list[str]) -> list[str]:
        """Return the warehouses that the CU may use, the default first."""
        if self.warehouse is not None:
            return [self.warehouse]
        return all_warehouses if self.warehouses == "all" else list(self.warehouses or [])
