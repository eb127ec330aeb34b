"""Calls about tag definitions: a project's vocabulary of tags."""

from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError
from lakewright.lakekeeper.api.connection.paging import pages

ROOT = "/management/v1/tag-definition"


def id_of(client: Client, project_id: str, name: str) -> str | None:
    """Id of a tag by its name, in whatever case; None if the project, or the tag in it, is not there to be seen."""
    try:
        for page in pages(client, ROOT, {"name": name}, project=project_id):
            for one in cast(list[dict[str, Any]], page["tag-definitions"]):
                if str(one["name"]).casefold() == name.casefold():
                    return str(one["id"])
    except NotFoundError:
        pass
    return None


def is_there(client: Client, project_id: str, definition_id: str) -> bool:
    """Whether a project has a tag of that id, and this identity sees it."""
    try:
        client.json("GET", f"{ROOT}/{definition_id}", project=project_id)
    except NotFoundError:
        return False
    return True
