"""Users as rows: made or replaced on request, or from the token of somebody who calls for the first time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.orm import Session

from ..protocol.clock import optional_timestamp, timestamp
from ..protocol.errors import ApiError
from ..protocol.requests import Principal
from .models import UserRow
from .server_context import ServerContext

UserType = Literal["human", "application"]


@dataclass(frozen=True)
class UserDetails:
    """What a request says about a user; the token fills in what it leaves out."""

    name: str | None = None
    email: str | None = None
    user_type: UserType | None = None


def find_user(session: Session, user_id: str) -> UserRow | None:
    """Return a user who is not deleted."""
    user = session.get(UserRow, user_id)
    return None if user is None or user.deleted_at is not None else user


def provision(server: ServerContext, session: Session, who: Principal, details: UserDetails, by: str) -> UserRow:
    """The user's row, new or replaced; a deleted user is back. `by` is the endpoint that `last-updated-with` shows."""
    user = session.get(UserRow, who.id)
    if user is None:
        user = UserRow(id=who.id, created_at=server.clock.now(), updated_at=None)
        session.add(user)
    else:
        user.updated_at = server.clock.now()
    user.name = details.name or who.name or f"Nameless App with ID {who.id}"
    user.email, user.user_type = (
        details.email or who.email or None,
        details.user_type or ("human" if who.is_human else "application"),
    )
    user.last_updated_with, user.deleted_at = by, None
    return user


def user_missing(user_id: str) -> ApiError:
    return ApiError(404, "UserNotFound", f"User with id {user_id} not found.")


def shown(user: UserRow) -> dict[str, Any]:
    return {
        "name": user.name,
        "email": user.email,
        "id": user.id,
        "user-type": user.user_type,
        "last-updated-with": user.last_updated_with,
        "created-at": timestamp(user.created_at),
        "updated-at": optional_timestamp(user.updated_at),
    }
