"""Calls about users. They belong to the whole server."""

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError, NotFoundError
from lakewright.lakekeeper.api.connection.list_cache import Index
from lakewright.lakekeeper.api.connection.paging import pages

ROOT = "/management/v1/user"

LISTED_PAGES = 10
"""Pages of 1000 users that are listed to save single reads. A server may have far more users than a stack."""

UserResponse = dict[str, Any]
"""A user in the server's JSON."""


def _url(user_id: str) -> str:
    return f"{ROOT}/{quote(user_id, safe='~')}"


def create(client: Client, user_id: str, properties: dict[str, Any]) -> UserResponse:
    """Create a user; an existing user is refused. `properties` has a name and user-type, and optionally an email."""
    return client.json("POST", ROOT, body={"id": user_id, **properties}, idempotent=False)


def restore(client: Client, user_id: str, properties: dict[str, Any]) -> UserResponse:
    """Create a user whose id belongs to a deleted user: the server keeps the rows of deleted users."""
    body = {"id": user_id, **properties, "update-if-exists": True}
    return client.json("POST", ROOT, body=body, idempotent=False)


def get(client: Client, user_id: str) -> UserResponse | None:
    """Return a user by id; None if there is none."""
    try:
        return client.json("GET", _url(user_id))
    except NotFoundError:
        return None


def list_all(client: Client) -> list[UserResponse]:
    """Return the visible users."""
    return [user for page in _pages(client) for user in page]


def _pages(client: Client, most: int | None = None) -> Iterator[list[UserResponse]]:
    return (cast(list[UserResponse], page["users"]) for page in pages(client, ROOT, most=most))


def get_cached(client: Client, user_id: str) -> UserResponse | None:
    """Return a user from the shared list, or by a separate call if the list lacks it."""
    key = (client.identity, "users")
    shared_list = client.lists.get_cached_unless_refused(key, lambda: Index(_pages(client, LISTED_PAGES)))
    return (shared_list and shared_list.get(user_id)) or get(client, user_id)


def replace(client: Client, user_id: str, properties: dict[str, Any]) -> None:
    """Replace a user's properties. Omitted properties are removed."""
    client.call("PUT", _url(user_id), body=properties)


def delete(client: Client, user_id: str) -> None:
    """Delete a user."""
    client.call("DELETE", _url(user_id))


def get_ourselves_cached(client: Client) -> str | None:
    """Return what `ourselves` returns, from one call for all readers of a run."""
    return client.lists.get_cached((client.identity, "whoami"), lambda: ourselves(client))


def ourselves(client: Client) -> str | None:
    """Return the id of the calling user; None if the server does not authenticate or does not know the user yet."""
    try:
        return str(client.json("GET", "/management/v1/whoami")["id"])
    except NotAuthenticatedError:
        if client.server().authz_backend == "allow-all":
            return None
        raise
    except NotFoundError:
        return None
