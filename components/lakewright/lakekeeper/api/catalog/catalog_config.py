"""The first call of a catalog's client: where it is, and the id of a warehouse for its name."""

from typing import Any

from lakewright.lakekeeper.api.connection.client import Client


def get(client: Client, warehouse: str, project_id: str | None = None) -> dict[str, Any]:
    """Defaults and overrides for an active warehouse, by its name."""
    # What stands before the first slash is read as a project id, so a name alone would do for the default project only.
    name = f"{project_id}/{warehouse}" if project_id else warehouse
    return client.json("GET", "/catalog/v1/config", params={"warehouse": name})
