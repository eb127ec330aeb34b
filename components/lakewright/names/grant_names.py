"""Names in grants: principals, kinds of roles, and tables within a warehouse."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, TypeAdapter

from lakewright.names.table_name import parse_parts, quote
from lakewright.names.types import NamespacePath, TableName, UserId

_PRINCIPAL = re.compile(r"(user|role):\S+")
_USER_ID = TypeAdapter[str](UserId)


def _principal(value: str) -> str:
    if not _PRINCIPAL.fullmatch(value):
        raise ValueError("expected `user:IDP~SUBJECT` or `role:NAME`")
    kind, _, name = value.partition(":")
    if kind == "user":
        _USER_ID.validate_python(name)
    return value


Principal = Annotated[str, AfterValidator(_principal)]
"""`user:IDP~SUBJECT`, or `role:NAME` of the tenant's project."""

RoleKind = Literal["owner", "writer", "reader", "maintainer"]
"""Kinds of the roles that the stack makes for each warehouse, with the names WAREHOUSE-KIND."""


_NAMESPACE = TypeAdapter[str](NamespacePath)
_TABLE_NAME = TypeAdapter[str](TableName)


def _normalize_table(value: str) -> str:
    parts = parse_parts(value)
    if len(parts) < 2:
        raise ValueError("expected NAMESPACE.TABLE; the namespace may have several levels")
    _NAMESPACE.validate_python(".".join(parts[:-1]))
    _TABLE_NAME.validate_python(parts[-1])
    return ".".join(quote(part) for part in parts)


TableInWarehouse = Annotated[str, AfterValidator(_normalize_table)]
"""NAMESPACE.TABLE; the namespace may have several levels."""
