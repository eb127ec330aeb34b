"""Users of the server: provision, read, list, search, replace, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import AliasChoices, Field
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target, forget_objects
from lakewright_sandbox.lakekeeper.database.models import UserRow
from lakewright_sandbox.lakekeeper.database.users import (
    UserDetails,
    UserType,
    find_user,
    provision,
    user_missing,
    user_to_json,
)
from lakewright_sandbox.lakekeeper.management.identities.search import (
    MAX_LENGTH,
    MAX_RESULTS,
    Search,
    trigram_distance,
    trigrams,
)
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import UserId, validate_user_id
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Caller, TokenPrincipal, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import AskedPage
from lakewright_sandbox.lakekeeper.server.server import Server

router = APIRouter(prefix="/management/v1")


class CreateUser(Body):
    """Request to create a user."""

    id: UserId | None = None
    name: str | None = None
    email: str | None = None
    user_type: UserType | None = None
    update_if_exists: bool = False


class UpdateUser(Body):
    """Request to update a user."""

    name: str
    user_type: UserType = Field(validation_alias=AliasChoices("user-type", "user_type"))
    email: str | None = None


@router.post("/user")
def create_user(server: Server, caller: Caller, body: Annotated[CreateUser, read_body(CreateUser)]) -> Response:
    """Create a user. Callers create themselves without an id or with their own; their token provides details."""
    principal = TokenPrincipal(body.id) if body.id else caller
    if principal is None:
        message = "User ID could not be extracted from the token and must be provided for creating a user."
        raise ApiError(400, "MissingUserId", message)
    details = UserDetails(body.name or None, body.email or None, body.user_type)
    with server.database.write() as session:
        if caller is not None and principal.id == caller.id:
            principal = caller
        else:
            server.authorizer.require(session, Target("server", server.server_id), "provision_users")
            _check_complete(details)
        user = session.get(UserRow, principal.id)
        if user is not None and not body.update_if_exists:
            raise ApiError(409, "UserAlreadyExists", f"User with id {principal.id} already exists.")
        created = provision(server, session, principal, details, "create-endpoint")
    return json_response(user_to_json(created), 201 if user is None else 200)


def _check_complete(details: UserDetails) -> None:
    if not details.name:
        raise ApiError(400, "MissingUserName", "Name must be provided for user provisioning")
    if details.user_type is None:
        raise ApiError(400, "MissingUserType", "Name and user_type must be provided for user provisioning")


@router.get("/user")
def list_users(
    server: Server,
    page: AskedPage,
    name: str | None = None,
) -> Response:
    """List users, optionally by name."""
    query = select(UserRow).where(UserRow.deleted_at.is_(None))
    if name:
        query = query.where(UserRow.name.icontains(name, autoescape=True))
    with server.database.read() as session:
        users = session.scalars(page.select(query, UserRow.created_at, UserRow.id)).all()
    return json_response({"users": [user_to_json(user) for user in users], "next-page-token": page.build_token(users)})


@router.post("/search/user")
def search_user(server: Server, body: Annotated[Search, read_body(Search)]) -> Response:
    """Find users: first by id, then by the closest names and addresses."""
    term = body.search[:MAX_LENGTH]
    term_trigrams = trigrams(term)
    with server.database.read() as session:
        query = select(UserRow).where(UserRow.deleted_at.is_(None)).order_by(UserRow.created_at, UserRow.id)
        users = session.scalars(query).all()

    def closeness(user: UserRow) -> tuple[bool, float]:
        return user.id != term, trigram_distance(term_trigrams, trigrams(f"{user.name} {user.email or ''}"))

    fields = ("name", "id", "user-type", "email")
    matches = [user_to_json(user) for user in sorted(users, key=closeness)[:MAX_RESULTS]]
    return json_response({"users": [{field: user[field] for field in fields} for user in matches]})


@router.get("/user/{user_id}")
def get_user(server: Server, user_id: str) -> Response:
    """Return a user."""
    with server.database.read() as session:
        user = find_user(session, validate_user_id(user_id))
    if user is None:
        raise user_missing(user_id)
    return json_response(user_to_json(user))


@router.put("/user/{user_id}")
def update_user(server: Server, user_id: str, body: Annotated[UpdateUser, read_body(UpdateUser)]) -> Response:
    """Replace a user's details."""
    if not body.name:
        raise ApiError(400, "EmptyName", "Name cannot be empty")
    with server.database.write() as session:
        user = session.get(UserRow, validate_user_id(user_id))
        if user is None:
            raise ApiError(404, "UserNotFound", "User does not exist")
        user.name, user.user_type, user.email = body.name, body.user_type, body.email or None
        user.last_updated_with, user.updated_at, user.deleted_at = "update-endpoint", server.clock.now(), None
    return empty(200)


@router.delete("/user/{user_id}")
def delete_user(server: Server, user_id: str) -> Response:
    """Delete the user's grants and mark the row as deleted; the id remains used.

    Before 0.13 a deleted user can be deleted again.
    """
    with server.database.write() as session:
        find = find_user if server.settings.is_at_least("0.13") else _find_row
        user = find(session, validate_user_id(user_id))
        if user is None:
            raise user_missing(user_id)
        forget_objects(session, "user", [user.id])
        user.name, user.email, user.deleted_at = "Deleted User", None, server.clock.now()
    return empty()


def _find_row(session: Session, user_id: str) -> UserRow | None:
    return session.get(UserRow, user_id)
