"""Users as rows: created or replaced on request, or from the token of a first call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import UserRow
from lakewright_sandbox.lakekeeper.database.server_context import ServerContext
from lakewright_sandbox.lakekeeper.protocol.clock import optional_timestamp, timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal

UserType = Literal["human", "application"]


@dataclass(frozen=True)
class UserDetails:
    """Details of a user in a request; the token provides missing details."""

    name: str | None = None
    email: str | None = None
    user_type: UserType | None = None


def find_user(session: Session, user_id: str) -> UserRow | None:
    """Return a user who is not deleted."""
    user = session.get(UserRow, user_id)
    return None if user is None or user.deleted_at is not None else user


def provision(
    server: ServerContext, session: Session, principal: TokenPrincipal, details: UserDetails, by: str
) -> UserRow:
    """Create, replace or restore a user's row. `by` is the endpoint for `last-updated-with`."""
    user = session.get(UserRow, principal.id)
    if user is None:
        user = UserRow(id=principal.id, created_at=server.clock.now(), updated_at=None)
        session.add(user)
    else:
        user.updated_at = server.clock.now()
    user.name = details.name or principal.name or f"Nameless App with ID {principal.id}"
    user.email, user.user_type = (
        details.email or principal.email or None,
        details.user_type or ("human" if principal.is_human else "application"),
    )
    user.last_updated_with, user.deleted_at = by, None
    return user


def user_missing(user_id: str) -> ApiError:
    """Return the 404 of a missing user."""
    return ApiError(404, "UserNotFound", f"User with id {user_id} not found.")


def user_to_json(user: UserRow) -> dict[str, Any]:
    """Return a user as responses contain it."""
    return {
        "name": user.name,
        "email": user.email,
        "id": user.id,
        "user-type": user.user_type,
        "last-updated-with": user.last_updated_with,
        "created-at": timestamp(user.created_at),
        "updated-at": optional_timestamp(user.updated_at),
    }
