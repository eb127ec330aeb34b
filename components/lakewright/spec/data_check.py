"""The entries of `checks`: assertions about tables, warehouses and access."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from lakewright.names.grant_names import Principal, TableInWarehouse
from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.names.types import NamespacePath, RoleArn, TableName
from lakewright.validation.quantity import FileSize, seconds_between, text_of_number
from lakewright.validation.strict_model import StrictModel

_TABLE_NAME = TypeAdapter[str](TableName)
_MAX_SECONDS = 9999 * 86_400


def age_seconds(duration: str) -> int:
    """Return the seconds of an age such as `45m`, `26h` or `2d`. Raises ValueError."""
    return seconds_between(
        duration, 60, _MAX_SECONDS, "an age of at least a minute, such as `45m`, `26h` or `2d`", units="mhd"
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


class WarehouseCheck(StrictModel):
    """A warehouse holds at most `max_bytes` bytes."""

    warehouse: str
    max_bytes: Annotated[FileSize, BeforeValidator(text_of_number)]
    """Most bytes: `500GiB`."""
    of: Literal["live", "stored"] = "live"
    """`live`: the files of all tables' current snapshots. `stored`: all object versions under the warehouse's key
    prefix, with old snapshots, metadata, orphan files and files of dropped tables."""


Access = Literal["read", "write"]

_PRINCIPAL = TypeAdapter[str](Principal)
_ROLE_ARN = TypeAdapter[str](RoleArn)


def _principal(value: str) -> str:
    if value.startswith("arn:"):
        return _ROLE_ARN.validate_python(value)
    if not re.fullmatch(r"(user|role):\S+", value):
        raise ValueError("expected `role:NAME`, `user:IDP~SUBJECT`, or the ARN of an IAM role")
    return _PRINCIPAL.validate_python(value)


class AccessTarget(StrictModel):
    """The data of a warehouse, or of a namespace or table in it."""

    warehouse: str
    namespace: NamespacePath | None = None
    table: TableInWarehouse | None = None
    """NAMESPACE.TABLE in the warehouse; quote a part that contains a dot."""

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.namespace and self.table:
            raise ValueError("expected `namespace` or `table`, not both")
        return self

    def __str__(self) -> str:
        """Return the dotted name."""
        inside = self.table or self.namespace
        return f"{self.warehouse}.{inside}" if inside else self.warehouse


class AccessCheck(StrictModel):
    """A check of the rights that a principal has, or does not have."""

    principal: Annotated[str, AfterValidator(_principal)]
    """`role:NAME` or `user:IDP~SUBJECT` of the catalog, or the ARN of an IAM role."""
    on: AccessTarget
    can: list[Access] = []
    """Allowed on every table."""
    cannot: list[Access] = []
    """Allowed on no table."""

    @property
    def is_iam(self) -> bool:
        """Whether the principal is an IAM role."""
        return self.principal.startswith("arn:")

    @model_validator(mode="after")
    def _asserts_something(self) -> Self:
        if not self.can and not self.cannot:
            raise ValueError("expected `can`, `cannot`, or both")
        if both := [access for access in self.can if access in self.cannot]:
            raise ValueError(f"expected `{both[0]}` in `can` or in `cannot`, not both")
        return self


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
