"""Calls about the tag definitions of a project."""

from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
from lakewright.lakekeeper.api.connection.paging import pages

ROOT = "/management/v1/tag-definition"


def find_id(client: Client, project_id: str, name: str) -> str | None:
    """Return the id of a tag by name, ignoring case; None if the project or tag does not exist or is hidden."""
    try:
        for page in pages(client, ROOT, {"name": name}, project=project_id):
            for tag in cast(list[dict[str, Any]], page["tag-definitions"]):
                if str(tag["name"]).casefold() == name.casefold():
                    return str(tag["id"])
    except NotFoundError:
        pass
    return None


def is_there(client: Client, project_id: str, definition_id: str) -> bool:
    """Return whether a project has a visible tag with this id."""
    try:
        client.json("GET", f"{ROOT}/{definition_id}", project=project_id)
    except NotFoundError:
        return False
    return True
