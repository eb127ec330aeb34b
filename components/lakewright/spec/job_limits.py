"""Limits of maintenance runs: their budget, Spark's heap in a pod, and the Spark properties that a spec may set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, ByteSize, Field, TypeAdapter

from lakewright.spec.size import Size
from lakewright.validation.quantity import parse_bytes

_PYTHON_MIB = 512
"""MiB of the scheduler's process in the pod."""
_MIN_OVERHEAD_MIB = 384
"""MiB outside the heap: Spark's minimum. Otherwise Spark adds a tenth of the heap."""
_MIN_HEAP_MIB = 640
"""MiB that Spark needs. Specs of earlier releases may have smaller pods, which suffice for small tables."""
_MIB = 2**20


def compute_heap(size: Size) -> str:
    """Return `spark.driver.memory` of a run's pod in MiB.

    >>> [compute_heap(Size(memory=memory)) for memory in ("1Gi", "4Gi", "16Gi")]
    ['640m', '3200m', '14429m']
    """
    java_mib = parse_bytes(size.memory) // _MIB - _PYTHON_MIB
    return f"{max(_MIN_HEAP_MIB, min(java_mib - _MIN_OVERHEAD_MIB, java_mib * 10 // 11))}m"


def _check_budget(text: str) -> str:
    if re.fullmatch(r"[1-9]\d{0,5}[mh]", text):
        return text
    if re.fullmatch(r"\d+(\.\d+)?[KMGTP]i?B", text) and int(TypeAdapter(ByteSize).validate_python(text)):
        return text
    raise ValueError("expected bytes such as `500GiB`, or minutes such as `90m` or hours such as `8h`")


Budget = Annotated[str, AfterValidator(_check_budget), Field(examples=["500GiB", "8h"])]
"""Bytes such as `500GiB`, or a time such as `90m` or `8h`."""

_RESERVED: Mapping[str, str] = {
    r"spark\.(master|submit\..*|remote|app\..*)": "the run sets the master",
    r"spark\.sql\.(catalog\..*|catalog|defaultCatalog|extensions)": "catalogs come from the tenant's warehouses",
    r"spark\.(driver|executor)\.(memory.*|cores|extraClassPath)": "`size` and `executors` set the memory and CPU",
    r"spark\.executor\.instances": "`executors.count` sets the number",
    r"spark\.(driver|blockManager)\.(host|port|bindAddress|blockManager\.port)": "the run sets its addresses",
    r"spark\.kubernetes\..*": "the pods are made by the stack",
    r"spark\.(authenticate|network\.crypto|ssl|io\.encryption|redaction).*": "connections have to remain encrypted",
    r"spark\.scheduler\.(mode|pool)": "the run shares Spark among tables",
    r"(?i).*(secret|password|token|credential|access[._-]?key).*": "credentials come from the catalog",
}
"""Properties that would break a run, as regular expressions, and why."""


def _check_properties(properties: dict[str, str]) -> dict[str, str]:
    for name in properties:
        if not re.fullmatch(r"spark\.[\w.-]+", name):
            raise ValueError(f"expected names such as spark.sql.shuffle.partitions, found {name!r}")
        for pattern, why in _RESERVED.items():
            if re.fullmatch(pattern, name):
                raise ValueError(f"expected no {name}, since {why}")
    return properties


SparkProperties = Annotated[dict[str, str], AfterValidator(_check_properties)]
"""Properties of Spark by name."""
