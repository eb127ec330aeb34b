"""Calls about the members of a role. Servers without the members API have OpenFGA tuples instead."""

from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import quote

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError, NotGrantableError, UnsupportedServerError
from lakewright.lakekeeper.api.connection.paging import pages, parts
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry, Object, PrincipalKind
from lakewright.lakekeeper.api.management import grants
from lakewright.lakekeeper.api.management.roles import ROOT

Member = tuple[PrincipalKind, str]
"""Kind and id of a user or role."""


def list_members(client: Client, project_id: str, role_id: str) -> frozenset[Member] | None:
    """Return the direct members of a role; None if the project has no such role."""
    if _tuples(client):
        role_grants = grants.list_grants(client, _role(project_id, role_id))
        return (
            None
            if role_grants is None
            else frozenset((h.kind, h.principal) for h in role_grants if h.privilege == ASSIGNEE)
        )
    try:
        return frozenset(
            (cast(PrincipalKind, member["type"]), str(member["id"]))
            for page in pages(client, _url(role_id), project=project_id)
            for member in cast(list[dict[str, Any]], page["members"])
        )
    except NotFoundError:
        return None


def change(client: Client, project_id: str, role_id: str, add: Iterable[Member], remove: Iterable[Member]) -> None:
    """Add and remove members. Succeeds for members that are already added or removed."""
    added, removed = sorted(add), sorted(remove)
    if _tuples(client):
        writes = {GrantEntry(ASSIGNEE, kind, principal) for kind, principal in added}
        deletes = {GrantEntry(ASSIGNEE, kind, principal) for kind, principal in removed}
        grants.converge(client, _role(project_id, role_id), lambda _: (writes, deletes))
        return
    for batch in parts(added, grants.MAX_ENTRIES_PER_CALL):
        body = {"members": [{"type": kind, "id": principal} for kind, principal in batch]}
        try:
            client.call("POST", _url(role_id), project=project_id, body=body)
        except NotFoundError as missing:
            if missing.kind != "RoleAssignmentUserNotFound":
                raise
            raise NotGrantableError(f"{missing}. Declare a `User`, and let the members depend on it") from None
    for kind, principal in removed:
        client.call("DELETE", f"{_url(role_id)}/{kind}/{quote(principal, safe='~')}", project=project_id)


def _url(role_id: str) -> str:
    return f"{ROOT}/{role_id}/members"


def _role(project_id: str, role_id: str) -> Object:
    return Object("role", role_id, project_id=project_id)


def _tuples(client: Client) -> bool:
    server = client.server()
    if not server.has_role_members and not server.keeps_tuples:
        raise UnsupportedServerError(
            f"members of roles need Lakekeeper 0.13 or newer, or OpenFGA; {client.endpoint} runs"
            f" {server.version_text} with authorizer `{server.authz_backend}`. Remove the members or upgrade it."
        )
    return not server.has_role_members
