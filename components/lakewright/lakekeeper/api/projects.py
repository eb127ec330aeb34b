"""Calls about the server itself and its projects."""

from typing import Any

from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import Refused

ROOT = "/management/v1"


def bootstrap(client: Client, body: dict[str, Any]) -> None:
    """Bootstrap the server. One that is already bootstrapped is a success."""
    try:
        client.call("POST", f"{ROOT}/bootstrap", body=body)
    except Refused as refused:
        if refused.kind not in {"CatalogAlreadyBootstrapped", "ConcurrentBootstrap"}:
            raise


def create(client: Client, project_id: str, name: str) -> None:
    """Create a project under an id of our choice."""
    body = {"project-id": project_id, "project-name": name}
    client.call("POST", f"{ROOT}/project", body=body, idempotent=False)


def name_of(client: Client, project_id: str) -> str:
    """Name of a project."""
    return str(client.json("GET", f"{ROOT}/project", project=project_id)["project-name"])


def rename(client: Client, project_id: str, name: str) -> None:
    """Give a project another name."""
    client.call("POST", f"{ROOT}/project/rename", project=project_id, body={"new-name": name})


def delete(client: Client, project_id: str) -> None:
    """Delete an empty project."""
    client.call("DELETE", f"{ROOT}/project", project=project_id)
