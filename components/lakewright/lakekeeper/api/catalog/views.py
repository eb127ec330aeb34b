"""Calls about views."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog import namespaces
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.catalog.tables import NO_CREDENTIALS
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

Metadata = dict[str, Any]
"""A view's metadata in the format of the Iceberg view specification."""


def load(client: Client, warehouse_id: str, namespace: Path, name: str) -> Metadata | None:
    """Return a view's metadata; None if the view does not exist or is hidden."""
    path = f"{namespaces.url(warehouse_id, namespace)}/views/{quote(name, safe='')}"
    try:
        return client.json("GET", path, headers=NO_CREDENTIALS)["metadata"]
    except NotFoundError:
        return None
