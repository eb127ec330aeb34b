"""Calls about the server itself and its projects."""

from typing import Any, cast

from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotFoundError, RefusedError

ROOT = "/management/v1"

DEADLOCK_WAIT = 5.0
"""Maximum seconds in which a deletion is repeated after an error of the server's database."""


def bootstrap(client: Client, body: dict[str, Any]) -> None:
    """Bootstrap the server. Succeeds if it is already bootstrapped."""
    try:
        client.call("POST", f"{ROOT}/bootstrap", body=body)
    except RefusedError as refused:
        if refused.kind not in {"CatalogAlreadyBootstrapped", "ConcurrentBootstrap"}:
            raise


def create(client: Client, project_id: str, name: str) -> None:
    """Create a project with a given id."""
    body = {"project-id": project_id, "project-name": name}
    client.call("POST", f"{ROOT}/project", body=body, idempotent=False)


def list_all(client: Client) -> dict[str, str]:
    """Return the names of the visible projects by id."""
    project_list = cast(list[dict[str, Any]], client.json("GET", f"{ROOT}/project-list")["projects"])
    return {str(project["project-id"]): str(project["project-name"]) for project in project_list}


def read_name(client: Client, project_id: str) -> str | None:
    """Return the name of a project; None if it does not exist."""
    try:
        return str(client.json("GET", f"{ROOT}/project", project=project_id)["project-name"])
    except NotFoundError:
        return None
    except ForbiddenError:
        # OpenFGA is asked before the catalog, and does not know a project that does not exist.
        if not sees_all(client):
            raise
        return None


def sees_all(client: Client) -> bool:
    """Return whether no project is hidden: a user who may create projects sees all, so that a 403 means "deleted"."""
    try:
        allowed = cast(list[dict[str, Any]], client.json("GET", f"{ROOT}/server/actions")["allowed-actions"])
    except RefusedError:
        return False
    return any(action.get("action") == "create_project" for action in allowed)


def get_cached(client: Client, project_id: str) -> str | None:
    """Return the name of a project from the shared list, or by a separate call if the list lacks it."""
    project_list = client.lists.get_cached_unless_refused((client.identity, "projects"), lambda: list_all(client))
    return (project_list or {}).get(project_id) or read_name(client, project_id)


def rename(client: Client, project_id: str, name: str) -> None:
    """Rename a project."""
    client.call("POST", f"{ROOT}/project/rename", project=project_id, body={"new-name": name})


def delete(client: Client, project_id: str) -> None:
    """Delete an empty project.

    Lakekeeper 0.13.3 counts calls by project in the background. A deletion at the same time can be the victim of a
    deadlock in the database: the server rolls it back and responds with 500 DatabaseError, so it is repeated.
    """
    retry_until(
        lambda: client.call("DELETE", f"{ROOT}/project", project=project_id),
        lambda error: isinstance(error, RefusedError) and (error.status, error.kind) == (500, "DatabaseError"),
        seconds=DEADLOCK_WAIT,
        every=0.5,
    )
