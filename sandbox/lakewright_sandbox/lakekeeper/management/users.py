"""Users of the server: provision, read, list, search, replace, delete."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import AliasChoices, Field
from sqlalchemy import select
from starlette.responses import Response

from ..authz.store import forget_objects
from ..clock import optional_timestamp, timestamp
from ..errors import ApiError
from ..identities import UserId, checked_user_id
from ..models import User
from ..paging import AskedPage
from ..requests import Body, read_body
from ..responses import empty, json_response
from ..server import Server
from .search import MAX_LENGTH, MAX_RESULTS, Search, trigram_distance, trigrams

UserType = Literal["human", "application"]

router = APIRouter(prefix="/management/v1")


class CreateUser(Body):
    id: UserId | None = None
    name: str | None = None
    email: str | None = None
    user_type: UserType | None = None
    update_if_exists: bool = False


class UpdateUser(Body):
    name: str
    user_type: UserType = Field(validation_alias=AliasChoices("user-type", "user_type"))
    email: str | None = None


@router.post("/user")
def create_user(server: Server, body: Annotated[CreateUser, read_body(CreateUser)]) -> Response:
    user_id, name, user_type = _provisioned(body)
    with server.database.write() as session:
        user = session.get(User, user_id)
        if user is not None and not body.update_if_exists:
            raise ApiError(409, "UserAlreadyExists", f"User with id {user_id} already exists.")
        created = user is None
        if user is None:
            user = User(id=user_id, created_at=server.clock.now(), updated_at=None)
            session.add(user)
        else:
            user.updated_at = server.clock.now()
        user.name, user.user_type, user.email = name, user_type, body.email or None
        user.last_updated_with = "create-endpoint"
    return json_response(shown(user), 201 if created else 200)


def _provisioned(body: CreateUser) -> tuple[str, str, str]:
    """Id, name and type of the user to be made. Raises 400 for what is missing."""
    if body.id is None:
        message = "User ID could not be extracted from the token and must be provided for creating a user."
        raise ApiError(400, "MissingUserId", message)
    if not body.name:
        raise ApiError(400, "MissingUserName", "Name must be provided for user provisioning")
    if body.user_type is None:
        raise ApiError(400, "MissingUserType", "Name and user_type must be provided for user provisioning")
    return body.id, body.name, body.user_type


@router.get("/user")
def list_users(
    server: Server,
    page: AskedPage,
    name: str | None = None,
) -> Response:
    query = select(User).where(User.name.icontains(name, autoescape=True)) if name else select(User)
    with server.database.read() as session:
        users = session.scalars(page.of(query, User.created_at, User.id)).all()
    return json_response({"users": [shown(user) for user in users], "next-page-token": page.token_behind(users)})


@router.post("/search/user")
def search_user(server: Server, body: Annotated[Search, read_body(Search)]) -> Response:
    """The user of that id first, then the closest names and addresses."""
    term = body.search[:MAX_LENGTH]
    wanted = trigrams(term)
    with server.database.read() as session:
        users = session.scalars(select(User).order_by(User.created_at, User.id)).all()

    def closeness(user: User) -> tuple[bool, float]:
        return user.id != term, trigram_distance(wanted, trigrams(f"{user.name} {user.email or ''}"))

    fields = ("name", "id", "user-type", "email")
    found = [shown(user) for user in sorted(users, key=closeness)[:MAX_RESULTS]]
    return json_response({"users": [{field: user[field] for field in fields} for user in found]})


@router.get("/user/{user_id}")
def get_user(server: Server, user_id: str) -> Response:
    with server.database.read() as session:
        user = session.get(User, checked_user_id(user_id))
    if user is None:
        raise user_missing(user_id)
    return json_response(shown(user))


@router.put("/user/{user_id}")
def update_user(server: Server, user_id: str, body: Annotated[UpdateUser, read_body(UpdateUser)]) -> Response:
    if not body.name:
        raise ApiError(400, "EmptyName", "Name cannot be empty")
    with server.database.write() as session:
        user = session.get(User, checked_user_id(user_id))
        if user is None:
            raise ApiError(404, "UserNotFound", "User does not exist")
        user.name, user.user_type, user.email = body.name, body.user_type, body.email or None
        user.last_updated_with, user.updated_at = "update-endpoint", server.clock.now()
    return empty(200)


@router.delete("/user/{user_id}")
def delete_user(server: Server, user_id: str) -> Response:
    """What the user was granted goes too: made again, the user starts with nothing."""
    with server.database.write() as session:
        user = session.get(User, checked_user_id(user_id))
        if user is None:
            raise user_missing(user_id)
        forget_objects(session, "user", [user.id])
        session.delete(user)
    return empty()


def user_missing(user_id: str) -> ApiError:
    return ApiError(404, "UserNotFound", f"User with id {user_id} not found.")


def shown(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "email": user.email,
        "id": user.id,
        "user-type": user.user_type,
        "last-updated-with": user.last_updated_with,
        "created-at": timestamp(user.created_at),
        "updated-at": optional_timestamp(user.updated_at),
    }
