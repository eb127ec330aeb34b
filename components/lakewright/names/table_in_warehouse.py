"""Names of tables within a warehouse: NAMESPACE.TABLE, with parts that contain dots in quotes."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, TypeAdapter

from lakewright.names.table_name import parse_parts, quote
from lakewright.names.types import NamespacePath, TableName

_NAMESPACE = TypeAdapter[str](NamespacePath)
_TABLE_NAME = TypeAdapter[str](TableName)


def _table(value: str) -> str:
    parts = parse_parts(value)
    if len(parts) < 2:
        raise ValueError("expected NAMESPACE.TABLE; the namespace may have several levels")
    _NAMESPACE.validate_python(".".join(parts[:-1]))
    _TABLE_NAME.validate_python(parts[-1])
    return ".".join(quote(part) for part in parts)


TableInWarehouse = Annotated[str, AfterValidator(_table)]
"""NAMESPACE.TABLE; the namespace may have several levels."""
