"""The catalog of Iceberg REST to which a stand-in of another catalog forwards its requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from pyiceberg.catalog import Catalog


class ForwardedCatalog:
    """A catalog that gets requests with the identity of its own client, whatever the stand-in's client sent."""

    def __init__(self, catalog: Catalog) -> None:
        """Take address, prefix and identity from a client of Iceberg REST."""
        client: Any = catalog
        self._url = f"{client.uri}/v1/{client.properties['prefix']}/"
        self._identity = client._auth_manager

    def open(self, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
        """Return a client whose paths begin after the prefix."""
        return httpx.AsyncClient(base_url=self._url, timeout=60, headers=headers, auth=self._authenticate)

    def _authenticate(self, request: httpx.Request) -> httpx.Request:
        if header := self._identity.auth_header():
            request.headers["Authorization"] = header
        return request
