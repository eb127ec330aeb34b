"""Who users and roles are to requests: their ids, and the bodies and parameters that name one of them."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple, Self
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from .errors import ApiError
from .requests import Body

MAX_LENGTH = 128


class Subject(NamedTuple):
    """`kind` is `user` or `role`; the id is `<identity provider>~<subject>`, or the role's UUID."""

    kind: str
    id: str

    def shown(self) -> dict[str, str]:
        return {self.kind: self.id}


def user_id_fault(value: str) -> tuple[str, str] | None:
    """What is wrong with a user's id: the error's type and a message; None if nothing is."""
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


def checked_user_id(value: str) -> str:
    """Raises 400 for a user id in a path that cannot be one."""
    if fault := user_id_fault(value):
        raise ApiError(400, *fault)
    return value


UserId = Annotated[str, AfterValidator(_valid_user_id)]
"""In bodies and query strings, where a wrong one is the framework's business to refuse."""

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
        return Subject("user", self.user) if self.user is not None else Subject("role", str(self.role))


def subject_of(user: str | None, role: Any) -> Subject | None:
    """The subject that a pair of query parameters names, at most one of which is given."""
    if user is not None:
        return Subject("user", user)
    return Subject("role", str(role)) if role is not None else None
