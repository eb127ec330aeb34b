"""Assertions about rights: a role, user or IAM role can or cannot read or write."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, TypeAdapter, model_validator

from lakewright.names.table_name import TableInWarehouse
from lakewright.names.types import NamespacePath, Principal, RoleArn
from lakewright.validation.strict_model import StrictModel

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
