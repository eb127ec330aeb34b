"""The spec of a tenant, as users write it under `lakewright:tenant`. All problems are reported at once."""

from lakewright.spec.computing_unit import ComputingUnitSpec
from lakewright.spec.maintenance import MaintenanceSpec
from lakewright.spec.parsing import SPEC_KEY, parse_spec, read_stack_file
from lakewright.spec.size import Size
from lakewright.spec.table import TableSpec
from lakewright.spec.tenant import TenantSpec
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.validation.problems import Problem, SpecError

__all__ = [
    "SPEC_KEY",
    "ComputingUnitSpec",
    "MaintenanceSpec",
    "Problem",
    "Size",
    "SpecError",
    "TableSpec",
    "TenantSpec",
    "WarehouseSpec",
    "parse_spec",
    "read_stack_file",
]
