"""The quota of a tenant's namespace, and what its computing units and maintenance jobs need of it. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated

from pydantic import Field

from lakewright.spec.computing_unit import ComputingUnitSpec
from lakewright.spec.maintenance import MaintenanceSpec
from lakewright.spec.size import Size
from lakewright.validation.quantity import Cpu, Memory, bytes_text, cpu_text, parse_bytes, parse_millicores
from lakewright.validation.strict_model import StrictModel

ACTIVATOR_SIZE = Size(cpu="100m", memory="256Mi", scratch="128Mi")
"""Size of the pod that starts and stops idle computing units."""
PROXY_SIZE = Size(cpu="100m", memory="256Mi", scratch="64Mi")
"""Size of the container that adds a token to a Texera unit's requests to the catalog. A response needs about as much
memory as it has bytes, and nothing limits these."""


class QuotaSpec(StrictModel):
    """Limits for the sum of all pods of a tenant. Default of each: what its units and jobs need."""

    cpu: Cpu | None = None
    memory: Memory | None = None
    scratch: Memory | None = None
    """Disk for temporary files."""
    gpu: Annotated[int, Field(ge=0)] | None = None
    pods: Annotated[int, Field(ge=1)] | None = None


@dataclass(frozen=True)
class Amounts:
    """Amounts of each resource."""

    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """Bytes."""
    scratch: int = 0
    """Bytes."""
    gpu: int = 0
    pods: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        """Return the sum."""
        return Amounts(**{name: getattr(self, name) + getattr(other, name) for name in RESOURCES})

    def __mul__(self, number: int) -> Amounts:
        """Return the amounts of `number` pods."""
        return Amounts(**{name: getattr(self, name) * number for name in RESOURCES})

    def text(self, resource: str) -> str:
        """Return the amount of a resource as the API server writes it."""
        amount: int = getattr(self, resource)
        if resource == "cpu":
            return cpu_text(amount)
        return bytes_text(amount) if resource in ("memory", "scratch") else str(amount)


RESOURCES = tuple(field.name for field in fields(Amounts))
"""Names of the resources, as in `QuotaSpec`."""


def count_amounts(size: Size) -> Amounts:
    """Return the amounts of one pod."""
    return Amounts(parse_millicores(size.cpu), parse_bytes(size.memory), parse_bytes(size.scratch), size.gpu, 1)


def sum_amounts(units: list[ComputingUnitSpec], maintenance: MaintenanceSpec | None) -> Amounts:
    """Return the sum of all pods that may run at the same time."""
    total = sum((_count_unit(unit) for unit in units), Amounts())
    if any(unit.idle_after for unit in units):
        total += count_amounts(ACTIVATOR_SIZE)
    if maintenance:
        for cron in maintenance.cron_jobs():
            run = count_amounts(cron.size)
            if executors := maintenance.executors:
                run += count_amounts(executors.pod_size) * executors.limit
            total += run * maintenance.runners
        for standby in maintenance.standby.values():
            total += count_amounts(standby.size) * standby.runs
    return total


def _count_unit(unit: ComputingUnitSpec) -> Amounts:
    """Return the amounts of a unit's pod. Only the environment knows whether a unit of Texera needs the proxy."""
    amounts = count_amounts(unit.size)
    if unit.runtime != "texera" or (unit.texera and unit.texera.catalog == "postgres"):
        return amounts
    return amounts + replace(count_amounts(PROXY_SIZE), pods=0)


def effective(quota: QuotaSpec | None, platform: QuotaSpec | None, need: Amounts) -> Amounts:
    """Return the quota: the tenant's, else the platform's, else what is needed."""
    limits = {name: _first(name, quota, platform) for name in RESOURCES}
    return Amounts(**{name: getattr(need, name) if amount is None else amount for name, amount in limits.items()})


def quota_mistakes(quota: QuotaSpec | None, platform: QuotaSpec | None, need: Amounts) -> Iterator[tuple[str, str]]:
    """Yield the resource and the mistake where a quota is above the platform's, or below what is needed."""
    limits = effective(quota, platform, need)
    for name in RESOURCES:
        amount, highest = read_amount(quota, name), read_amount(platform, name)
        if amount is not None and highest is not None and amount > highest:
            highest_text = Amounts(**{name: highest}).text(name)
            yield (
                name,
                f"expected at most {highest_text}, the environment's `kubernetes.quota`; found {limits.text(name)}",
            )
        elif getattr(need, name) > getattr(limits, name):
            yield (
                name,
                f"expected at least {need.text(name)}, the sum of all computing units and maintenance jobs; found"
                f" {limits.text(name)}. Raise the quota or declare smaller sizes",
            )


def read_amount(quota: QuotaSpec | None, resource: str) -> int | None:
    """Return the amount of a resource in millicores, bytes or pieces; None if the quota does not limit it."""
    value = getattr(quota, resource) if quota else None
    if value is None or isinstance(value, int):
        return value
    return parse_millicores(value) if resource == "cpu" else parse_bytes(value)


def _first(resource: str, *quotas: QuotaSpec | None) -> int | None:
    return next((amount for quota in quotas if (amount := read_amount(quota, resource)) is not None), None)
