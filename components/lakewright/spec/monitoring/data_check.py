"""Assertions about a table: it exists, and its rows are recent or many enough."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, TypeAdapter, WithJsonSchema, model_validator

from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.names.types import TableName
from lakewright.validation.duration import seconds_between
from lakewright.validation.strict_model import StrictModel

_TABLE_NAME = TypeAdapter[str](TableName)
_MOST = 9999 * 86_400


def age_seconds(duration: str) -> int:
    """Return the seconds of an age such as `45m`, `26h` or `2d`. Raises ValueError."""
    return seconds_between(
        duration, 60, _MOST, "an age of at least a minute, such as `45m`, `26h` or `2d`", units="mhd"
    )


def _age(value: str) -> str:
    age_seconds(value)
    return value


def _normalize_table_name(text: str) -> str:
    name = parse_table_name(text)
    _TABLE_NAME.validate_python(name.name)
    return str(name)


Age = Annotated[
    str, AfterValidator(_age), WithJsonSchema({"type": "string", "examples": ["2h"], "pattern": r"^\d{1,4}[mhd]$"})
]
"""An age: `45m`, `26h` or `2d`."""


class TableCheck(StrictModel):
    """A table exists. Optionally, it has rows, and recent rows."""

    table: Annotated[str, AfterValidator(_normalize_table_name)]
    """WAREHOUSE.NAMESPACE.TABLE; quote a part that contains a dot. Tables that jobs make need no declaration."""
    min_rows: Annotated[int, Field(ge=1)] | None = None
    """Fewest rows of the current snapshot."""
    newer_than: Age | None = None
    """Highest age of the newest rows: by `column`, else by the time of the newest snapshot that added rows."""
    column: Annotated[str, Field(min_length=1)] | None = None
    """Column of type date or timestamp that has the time of a row. A date counts until its end, in UTC."""

    @property
    def path(self) -> QualifiedName:
        """Parsed name."""
        return parse_table_name(self.table)

    @model_validator(mode="after")
    def _column_has_age(self) -> Self:
        if self.column and not self.newer_than:
            raise ValueError("expected `newer_than` with `column`")
        return self
