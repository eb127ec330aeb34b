"""Principals: users and roles, as grants and owners of warehouses name them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, TypeAdapter

from lakewright.names.types import UserId

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
