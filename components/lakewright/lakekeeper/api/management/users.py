"""Calls about users, who belong to the whole server."""

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError, NotFoundError
from lakewright.lakekeeper.api.connection.list_cache import Index
from lakewright.lakekeeper.api.connection.paging import pages

ROOT = "/management/v1/user"

LISTED_PAGES = 10
"""So many pages of a thousand users are read to spare single reads; a server may have far more users than a stack."""

UserResponse = dict[str, Any]
"""A user as the server answers it."""


def _url(user_id: str) -> str:
    return f"{ROOT}/{quote(user_id, safe='~')}"


def create(client: Client, user_id: str, properties: dict[str, Any]) -> UserResponse:
    """Provision a user; one that is there already is refused. `properties`: name, user-type and perhaps email."""
    return client.json("POST", ROOT, body={"id": user_id, **properties}, idempotent=False)


def restore(client: Client, user_id: str, properties: dict[str, Any]) -> UserResponse:
    """Provision a user whose id is taken by a deleted one: the server keeps the row of a user that it deleted."""
    return client.json("POST", ROOT, body={"id": user_id, **properties, "update-if-exists": True})


def get(client: Client, user_id: str) -> UserResponse | None:
    """A user by id, or None if there is none."""
    try:
        return client.json("GET", _url(user_id))
    except NotFoundError:
        return None


def list_all(client: Client) -> list[UserResponse]:
    """The users that we may see."""
    return [user for page in _pages(client) for user in page]


def _pages(client: Client, most: int | None = None) -> Iterator[list[UserResponse]]:
    return (cast(list[UserResponse], page["users"]) for page in pages(client, ROOT, most=most))


def get_cached(client: Client, user_id: str) -> UserResponse | None:
    """A user as a refresh sees it: from the list that all its readers share; alone if it is not in there."""
    listed = client.lists.get_cached_unless_refused((client, "users"), lambda: Index(_pages(client, LISTED_PAGES)))
    return (listed and listed.get(user_id)) or get(client, user_id)


def replace(client: Client, user_id: str, properties: dict[str, Any]) -> None:
    """Give a user other properties; those that are left out are removed."""
    client.call("PUT", _url(user_id), body=properties)


def delete(client: Client, user_id: str) -> None:
    """Delete a user."""
    client.call("DELETE", _url(user_id))


def ourselves(client: Client) -> str | None:
    """Id of the user that we are to the server; None where it asks nobody who they are, or has not met us."""
    try:
        return str(client.json("GET", "/management/v1/whoami")["id"])
    except NotAuthenticatedError:
        if client.server().authz_backend == "allow-all":
            return None
        raise
    except NotFoundError:
        return None
