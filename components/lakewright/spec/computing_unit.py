"""A computing unit (CU): a workload on Kubernetes that uses the tenant's warehouses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from lakewright.names.types import ComputingUnitName
from lakewright.spec.identity import IdentitySpec
from lakewright.spec.size import Size, SizeChoice
from lakewright.validation.quantity import seconds_between
from lakewright.validation.strict_model import StrictModel

Runtime = Literal["spark", "texera"]
TexeraCatalog = Literal["rest", "postgres"]


def _form(value: object) -> str:
    return "tag:list" if isinstance(value, list) else "tag:all"


WarehouseChoice = Annotated[
    Annotated[Literal["all"], Tag("tag:all")] | Annotated[list[str], Field(min_length=1), Tag("tag:list")],
    Discriminator(_form),
]


def idle_seconds(duration: str) -> int:
    """Return the seconds of `idle_after`. Raises ValueError."""
    return seconds_between(duration, 60, 86_400, "a time of one minute to a day, such as `30m` or `4h`")


def _idle_after(value: str) -> str:
    idle_seconds(value)
    return value


class TexeraUnit(StrictModel):
    """Settings of a CU with runtime `texera`."""

    catalog: TexeraCatalog | None = None
    """Kind of Texera's catalog. Default: that of the environment's `kubernetes.texera`."""
    cuid: Annotated[int, Field(ge=1)] | None = None
    """Number of the CU in Texera, once it is registered there; a label of the pod."""


class ComputingUnitSpec(StrictModel):
    """A CU. It is bound to one warehouse (`warehouse`), or each execution chooses one (`warehouses`)."""

    name: ComputingUnitName
    runtime: Runtime
    image: Annotated[str, Field(min_length=1, pattern=r"^\S+$")] | None = None
    """Image by digest, `NAME@sha256:...`, unless the environment is a trial. Default: the environment's image for the
    runtime."""
    size: SizeChoice = Size()
    """`small`, `medium`, `large`, `xlarge`, or amounts."""
    idle_after: Annotated[str, AfterValidator(_idle_after)] | None = None
    """Time without traffic after which the CU is stopped, such as `30m`. The next connection starts it again.
    Work without a client ends with the CU, such as an execution of Texera whose browser was closed. Default: it is
    never stopped."""
    warehouse: str | None = None
    """Warehouse that the CU is bound to."""
    warehouses: WarehouseChoice | None = None
    """Warehouses that each execution chooses from."""
    texera: TexeraUnit | None = None
    """Settings of the runtime `texera`."""
    identity: IdentitySpec | None = None
    """The unit's identity at the catalog. Default: the tenant's, or the unit's ServiceAccount."""

    def visible_warehouses(self, all_warehouses: list[str]) -> list[str]:
        """Return the warehouses that the CU may use, the default first."""
        if self.warehouse is not None:
            return [self.warehouse]
        return all_warehouses if self.warehouses == "all" else list(self.warehouses or [])
