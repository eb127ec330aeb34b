"""The configuration call of the Iceberg REST catalog: its address, and the id of a warehouse by name."""

from typing import Any

from lakewright.lakekeeper.api.connection.client import Client


def get(client: Client, warehouse: str, project_id: str | None = None) -> dict[str, Any]:
    """Return the defaults and overrides of an active warehouse, by its name."""
    # The server reads the part before the first slash as a project id. A name alone works in the default project only.
    name = f"{project_id}/{warehouse}" if project_id else warehouse
    return client.json("GET", "/catalog/v1/config", params={"warehouse": name})
