"""Sizes of pods: named sizes, or amounts of CPU, memory, disk and GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from lakewright_spark.suggestions import suggest_name
from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from lakewright.validation.quantity import Cpu, Memory
from lakewright.validation.strict_model import StrictModel


class Size(StrictModel):
    """Resources of a pod; requests equal limits."""

    cpu: Cpu = "1"
    memory: Memory = "2Gi"
    scratch: Memory = "10Gi"
    """Disk for temporary files."""
    shm: Memory | None = None
    """Shared memory at /dev/shm; counts as memory."""
    gpu: Annotated[int, Field(ge=0, le=64)] = 0
    """Number of GPUs. `kubernetes.gpu` of the environment names their kind."""


SIZES: Mapping[str, Size] = {
    "small": Size(cpu="1", memory="2Gi", scratch="10Gi", shm="256Mi"),
    "medium": Size(cpu="2", memory="8Gi", scratch="20Gi", shm="1Gi"),
    "large": Size(cpu="4", memory="16Gi", scratch="50Gi", shm="2Gi"),
    "xlarge": Size(cpu="8", memory="32Gi", scratch="100Gi", shm="4Gi"),
}
"""Named sizes."""


def _size_of_name(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in SIZES:
        raise ValueError(
            f"expected one of {', '.join(SIZES)}, or amounts such as {{cpu: 2, memory: 8Gi}}"
            f"{suggest_name(value, SIZES)}"
        )
    return SIZES[value]


class _NamesInSchema:
    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "enum": list(SIZES)}, handler(core_schema)]}


SizeChoice = Annotated[Size, BeforeValidator(_size_of_name), _NamesInSchema()]
"""The name of a size, or amounts."""
