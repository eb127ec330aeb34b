"""Calls about the server itself and its projects."""

from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotFoundError, RefusedError

ROOT = "/management/v1"


def bootstrap(client: Client, body: dict[str, Any]) -> None:
    """Bootstrap the server. One that is already bootstrapped is a success."""
    try:
        client.call("POST", f"{ROOT}/bootstrap", body=body)
    except RefusedError as refused:
        if refused.kind not in {"CatalogAlreadyBootstrapped", "ConcurrentBootstrap"}:
            raise


def create(client: Client, project_id: str, name: str) -> None:
    """Create a project under an id of our choice."""
    body = {"project-id": project_id, "project-name": name}
    client.call("POST", f"{ROOT}/project", body=body, idempotent=False)


def list_all(client: Client) -> dict[str, str]:
    """Names of the projects that we may see, by id."""
    listed = cast(list[dict[str, Any]], client.json("GET", f"{ROOT}/project-list")["projects"])
    return {str(one["project-id"]): str(one["project-name"]) for one in listed}


def name_of(client: Client, project_id: str) -> str | None:
    """Name of a project, or None if there is no such project."""
    try:
        return str(client.json("GET", f"{ROOT}/project", project=project_id)["project-name"])
    except NotFoundError:
        return None
    except ForbiddenError:
        # OpenFGA is asked before the catalog, and knows nothing of a project that is not there.
        if not sees_all(client):
            raise
        return None


def sees_all(client: Client) -> bool:
    """Whether no project is hidden from us: who may make projects sees all of them, so that 403 means "gone"."""
    try:
        allowed = cast(list[dict[str, Any]], client.json("GET", f"{ROOT}/server/actions")["allowed-actions"])
    except RefusedError:
        return False
    return any(one.get("action") == "create_project" for one in allowed)


def get_cached(client: Client, project_id: str) -> str | None:
    """Name of a project as a refresh sees it: from the list that all its readers share; alone if it is not in there."""
    listed = client.lists.get_cached_unless_refused((client, "projects"), lambda: list_all(client))
    return (listed or {}).get(project_id) or name_of(client, project_id)


def rename(client: Client, project_id: str, name: str) -> None:
    """Give a project another name."""
    client.call("POST", f"{ROOT}/project/rename", project=project_id, body={"new-name": name})


def delete(client: Client, project_id: str) -> None:
    """Delete an empty project."""
    client.call("DELETE", f"{ROOT}/project", project=project_id)
