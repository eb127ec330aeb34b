"""One entry of `checks`. Its kind follows from its first key: `table`, `warehouse` or `principal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Discriminator, Tag

from lakewright.spec.monitoring.access_check import AccessCheck
from lakewright.spec.monitoring.data_check import TableCheck
from lakewright.spec.monitoring.warehouse_check import WarehouseCheck

DataCheck = TableCheck | WarehouseCheck | AccessCheck
_KEYS = {"table": TableCheck, "warehouse": WarehouseCheck, "principal": AccessCheck}


def _kind(value: object) -> str | None:
    if isinstance(value, Mapping):
        entry = cast(Mapping[str, Any], value)
        return next((f"tag:{key}" for key in _KEYS if key in entry), None)
    return next((f"tag:{key}" for key, model in _KEYS.items() if isinstance(value, model)), None)


CheckEntry = Annotated[
    Annotated[TableCheck, Tag("tag:table")]
    | Annotated[WarehouseCheck, Tag("tag:warehouse")]
    | Annotated[AccessCheck, Tag("tag:principal")],
    Discriminator(
        _kind,
        custom_error_type="unknown_check",
        custom_error_message="expected a check with one of the keys `table`, `warehouse` or `principal`",
    ),
]
"""An assertion about the tenant's data, which `lakewright check` evaluates."""
