"""Identities of users and roles in requests: their ids, and the bodies and parameters that name them."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple, Self
from uuid import UUID

from fastapi import Depends, Query
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body

MAX_LENGTH = 128


class Subject(NamedTuple):
    """A user or role. `kind` is `user` or `role`; the id is `<identity provider>~<subject>`, or the role's UUID."""

    kind: str
    id: str

    def to_json(self) -> dict[str, str]:
        """Return the subject as responses contain it."""
        return {self.kind: self.id}


def user_id_fault(value: str) -> tuple[str, str] | None:
    """Return the error type and message of an invalid user id, None for a valid id."""
    provider, separator, subject = value.partition("~")
    if not (provider and separator):
        return "InvalidUserId", f"Invalid user id: `{value}`. Expected format: `<idp_id>~<user-id>`"
    if not subject:
        return "EmptyUserIdError", "user id cannot be empty"
    if len(subject.encode()) >= MAX_LENGTH:
        return "UserIdTooLongError", f"user id must be shorter than {MAX_LENGTH} chars"
    if re.search(r"[\x00-\x1f\x7f-\x9f]", subject):
        return "InvalidUserIdError", "User ID cannot contain control characters."
    return None


def _valid_user_id(value: str) -> str:
    if fault := user_id_fault(value):
        raise ValueError(fault[1])
    return value


def validate_user_id(value: str) -> str:
    """Return a user id of a path. Raises 400 for an invalid id."""
    if fault := user_id_fault(value):
        raise ApiError(400, *fault)
    return value


UserId = Annotated[str, AfterValidator(_valid_user_id)]
"""A user id in bodies and query strings, where the framework refuses invalid ids."""

RoleId = Annotated[UUID, Field(strict=False)]


class UserOrRole(Body):
    """`{"user": id}` or `{"role": id}`."""

    model_config = ConfigDict(extra="forbid")

    user: UserId | None = None
    role: RoleId | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.user is None) == (self.role is None):
            raise ValueError("expected exactly one of `user` and `role`")
        return self

    @property
    def subject(self) -> Subject:
        """Return the named user or role."""
        return Subject("user", self.user) if self.user is not None else Subject("role", str(self.role))


def principal_parameters(error_type: str) -> Any:
    """Return a dependency on the user or role that the query parameters name, None if they name none.

    Naming both is a 400 of the given type.
    """

    async def read(
        user: Annotated[UserId | None, Query(alias="principalUser")] = None,
        role: Annotated[UUID | None, Query(alias="principalRole")] = None,
    ) -> Subject | None:
        if user is not None and role is not None:
            raise ApiError(400, error_type, "Specify at most one of `principalUser` and `principalRole`")
        if user is not None:
            return Subject("user", user)
        return Subject("role", str(role)) if role is not None else None

    return Depends(read)
