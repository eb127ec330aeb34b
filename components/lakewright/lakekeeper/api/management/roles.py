"""Calls about roles, each of one project."""

from collections.abc import Iterator
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
from lakewright.lakekeeper.api.connection.list_cache import Index
from lakewright.lakekeeper.api.connection.paging import pages

ROOT = "/management/v1/role"

RoleResponse = dict[str, Any]
"""A role as the server answers it."""


def create(client: Client, project_id: str, body: dict[str, Any]) -> RoleResponse:
    """Create a role. `body`: name and perhaps description, provider-id with source-id."""
    return client.json("POST", ROOT, project=project_id, body=body, idempotent=False)


def get(client: Client, project_id: str, role_id: str) -> RoleResponse | None:
    """A role of a project by id, or None if the project has none such."""
    try:
        return client.json("GET", f"{ROOT}/{role_id}", project=project_id)
    except NotFoundError:
        return None


def list_all(client: Client, project_id: str) -> list[RoleResponse]:
    """The roles of a project that we may see."""
    return [role for page in _pages(client, project_id) for role in page]


def _pages(client: Client, project_id: str) -> Iterator[list[RoleResponse]]:
    return (cast(list[RoleResponse], page["roles"]) for page in pages(client, ROOT, project=project_id))


def get_cached(client: Client, project_id: str, role_id: str) -> RoleResponse | None:
    """A role as a refresh sees it: from the list that all its readers share; alone if it is not in there."""
    listed = client.lists.get_cached_unless_refused(
        (client, "roles", project_id), lambda: Index(_pages(client, project_id))
    )
    return (listed and listed.get(role_id)) or get(client, project_id, role_id)


def find_by_name(client: Client, project_id: str, name: str) -> RoleResponse | None:
    """Return the role of a project that has a name. The server ignores case."""
    wanted = name.casefold()
    return next((role for role in list_all(client, project_id) if str(role["name"]).casefold() == wanted), None)


def of_source(client: Client, project_id: str, provider_id: str, source_id: str) -> RoleResponse | None:
    """The role of a project that stands for a role of an identity provider."""
    source = (provider_id, source_id)
    found = list_all(client, project_id)
    return next((role for role in found if (role.get("provider-id"), role.get("source-id")) == source), None)


def replace(client: Client, project_id: str, role_id: str, name: str, description: str | None) -> None:
    """Give a role another name and description; a description that is left out is removed."""
    body = {"name": name} | ({"description": description} if description else {})
    client.call("POST", f"{ROOT}/{role_id}", project=project_id, body=body)


def bind(client: Client, project_id: str, role_id: str, provider_id: str, source_id: str) -> None:
    """Let a role stand for another role of an identity provider."""
    body = {"provider-id": provider_id, "source-id": source_id}
    client.call("PUT", f"{ROOT}/{role_id}/source-system", project=project_id, body=body)


def delete(client: Client, project_id: str, role_id: str) -> None:
    """Delete a role, with its members and what it was granted."""
    client.call("DELETE", f"{ROOT}/{role_id}", project=project_id)
