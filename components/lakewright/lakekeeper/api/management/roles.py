"""Calls about roles. Each belongs to one project."""

from collections.abc import Iterator
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
from lakewright.lakekeeper.api.connection.list_cache import Index
from lakewright.lakekeeper.api.connection.paging import pages
from lakewright.ownership.record_role import exclude_record_roles, select_records

ROOT = "/management/v1/role"

RoleResponse = dict[str, Any]
"""A role in the server's JSON."""


def create(client: Client, project_id: str, body: dict[str, Any]) -> RoleResponse:
    """Create a role. `body` has a name, and optionally a description, and a provider-id with a source-id."""
    return client.json("POST", ROOT, project=project_id, body=body, idempotent=False)


def get(client: Client, project_id: str, role_id: str) -> RoleResponse | None:
    """Return a role of a project by id; None if the project has no such role."""
    try:
        return client.json("GET", f"{ROOT}/{role_id}", project=project_id)
    except NotFoundError:
        return None


def list_all(client: Client, project_id: str) -> list[RoleResponse]:
    """Return the visible roles of a project, without record roles."""
    return [role for page in _pages(client, project_id) for role in page]


def list_records(client: Client, project_id: str) -> dict[str, RoleResponse]:
    """Return the record roles of a project by name, in lower case. The other functions leave them out."""
    return select_records(role for page in _list_pages(client, project_id) for role in page)


def _pages(client: Client, project_id: str) -> Iterator[list[RoleResponse]]:
    return (exclude_record_roles(page) for page in _list_pages(client, project_id))


def _list_pages(client: Client, project_id: str) -> Iterator[list[RoleResponse]]:
    return (cast(list[RoleResponse], page["roles"]) for page in pages(client, ROOT, project=project_id))


def get_cached(client: Client, project_id: str, role_id: str) -> RoleResponse | None:
    """Return a role from the shared list, or by a separate call if the list lacks it."""
    shared_list = _list_shared(client, project_id)
    return (shared_list and shared_list.get(role_id)) or get(client, project_id, role_id)


def list_cached(client: Client, project_id: str) -> list[RoleResponse]:
    """Return the visible roles of a project, from the list that `get_cached` shares.

    Raises:
        RefusedError: The server refuses the list.
    """
    shared_list = _list_shared(client, project_id)
    return shared_list.values() if shared_list else list_all(client, project_id)


def _list_shared(client: Client, project_id: str) -> Index | None:
    return client.lists.get_cached_unless_refused(
        (client, "roles", project_id), lambda: Index(_pages(client, project_id))
    )


def find_by_name(client: Client, project_id: str, name: str) -> RoleResponse | None:
    """Return the role with this name in a project. The server ignores case."""
    folded_name = name.casefold()
    return next((role for role in list_all(client, project_id) if str(role["name"]).casefold() == folded_name), None)


def find_by_source(client: Client, project_id: str, provider_id: str, source_id: str) -> RoleResponse | None:
    """Return the role of a project that represents a role of an identity provider."""
    source = (provider_id, source_id)
    all_roles = list_all(client, project_id)
    return next((role for role in all_roles if (role.get("provider-id"), role.get("source-id")) == source), None)


def replace(client: Client, project_id: str, role_id: str, name: str, description: str | None) -> None:
    """Replace a role's name and description. A description of None is removed."""
    body = {"name": name} | ({"description": description} if description else {})
    client.call("POST", f"{ROOT}/{role_id}", project=project_id, body=body)


def bind(client: Client, project_id: str, role_id: str, provider_id: str, source_id: str) -> None:
    """Make a role represent another role of an identity provider."""
    body = {"provider-id": provider_id, "source-id": source_id}
    client.call("PUT", f"{ROOT}/{role_id}/source-system", project=project_id, body=body)


def delete(client: Client, project_id: str, role_id: str) -> None:
    """Delete a role with its members and grants."""
    client.call("DELETE", f"{ROOT}/{role_id}", project=project_id)
