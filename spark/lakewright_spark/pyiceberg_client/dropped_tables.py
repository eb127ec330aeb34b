"""Dropped tables of a warehouse of Lakekeeper that can be restored. Other catalogs report none."""

from __future__ import annotations

from typing import Any, cast

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from requests import Session

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import build_management_url

_HIDDEN = frozenset({401, 403, 404})
"""Statuses by which the server hides the list from this identity."""


def list_dropped_uuids(config: CatalogConfig, warehouse: str, catalog: Catalog) -> set[str] | None:
    """Return the UUIDs of the soft-deleted tables; None if this identity may not list them, or the catalog cannot.

    Raises:
        requests.RequestException: The server does not respond.
    """
    is_known = config.warehouse(warehouse).id is not None
    if config.kind != "lakekeeper" or not isinstance(catalog, RestCatalog) or not is_known:
        return None
    session = cast(Session, cast(Any, catalog)._session)
    url = f"{build_management_url(config, warehouse)}/deleted-tabulars"
    uuids: set[str] = set()
    params: dict[str, str | int] = {"pageSize": 1000}
    while True:
        response = session.get(url, params=params)
        if response.status_code in _HIDDEN:
            return None
        response.raise_for_status()
        page = response.json()
        uuids |= {tabular["id"] for tabular in page["tabulars"] if (tabular.get("typ") or "table") == "table"}
        token = page.get("next-page-token")
        if not token or token == params.get("pageToken"):
            return uuids
        params["pageToken"] = token
