"""Principals: users and roles, as grants and owners of warehouses name them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, TypeAdapter

from lakewright.names.types import UserId
from lakewright.ownership.record_role import is_record_role

_PRINCIPAL = re.compile(r"(user|role):\S+")
_USER_ID = TypeAdapter[str](UserId)


def _principal(value: str) -> str:
    if not _PRINCIPAL.fullmatch(value):
        raise ValueError("expected `user:IDP~SUBJECT` or `role:NAME`")
    kind, _, name = value.partition(":")
    if kind == "user":
        _USER_ID.validate_python(name)
    elif is_record_role({"name": name}):
        raise ValueError(f"role `{name}` is the record of the project's owner; choose another name")
    return value


Principal = Annotated[str, AfterValidator(_principal)]
"""`user:IDP~SUBJECT`, or `role:NAME` of the tenant's project."""

RoleKind = Literal["owner", "writer", "reader", "maintainer"]
"""Kinds of the roles that the stack makes for each warehouse, with the names WAREHOUSE-KIND."""
