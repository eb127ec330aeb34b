"""Calls about warehouses."""

from collections.abc import Mapping
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

ROOT = "/management/v1/warehouse"

WarehouseResponse = dict[str, Any]
"""A warehouse as the server answers it."""


def id_of(found: WarehouseResponse) -> str:
    """Id of a warehouse that the server answered."""
    return str(found.get("warehouse-id") or found["id"])


NAME_TAKEN = frozenset({"WarehouseAlreadyExists", "WarehouseNameAlreadyExists"})
"""Types of the refusals that say: another warehouse of the project has the name, active or not."""


def create(client: Client, project_id: str, body: Mapping[str, Any]) -> WarehouseResponse:
    """Create a warehouse; the server probes its storage."""
    client.lists.forget_run()
    return client.json("POST", ROOT, project=project_id, body=body, probes=True, idempotent=False)


def get(client: Client, warehouse_id: str) -> WarehouseResponse | None:
    """A warehouse by id, or None if there is none (or none that we may see)."""
    try:
        return client.json("GET", f"{ROOT}/{warehouse_id}")
    except NotFoundError:
        return None


def list_all(client: Client, project_id: str) -> list[WarehouseResponse]:
    """Return the warehouses of a project that we may see; servers before 0.14 list active ones only."""
    every = client.server().lists_inactive_warehouses
    params = {"warehouseStatus": ["active", "inactive"]} if every else None
    return cast(list[WarehouseResponse], client.json("GET", ROOT, project=project_id, params=params)["warehouses"])


def get_cached(client: Client, project_id: str, warehouse_id: str) -> WarehouseResponse | None:
    """A warehouse as a refresh sees it: from the list that all its readers share; alone if it is not in there."""
    listed = client.lists.get_cached_unless_refused(
        (client, "warehouses", project_id),
        lambda: {id_of(found): found for found in list_all(client, project_id)},
    )
    return (listed or {}).get(warehouse_id) or get(client, warehouse_id)


def find_by_name(client: Client, project_id: str, name: str) -> WarehouseResponse | None:
    """Return the listed warehouse that has a name, in any case. Before 0.14 an inactive one is not listed."""
    wanted = name.casefold()
    return next((w for w in list_all(client, project_id) if str(w["name"]).casefold() == wanted), None)


def change(client: Client, warehouse_id: str, what: str, body: Mapping[str, Any]) -> None:
    """One of the changes that repeat without harm: rename, delete-profile, protection, format-version-policy."""
    client.call("POST", f"{ROOT}/{warehouse_id}/{what}", body=body)


def change_storage(client: Client, warehouse_id: str, what: str, body: Mapping[str, Any]) -> None:
    """Replace storage profile and credential (`storage`) or the credential alone (`storage-credential`); probed."""
    client.lists.forget_run()
    client.call("POST", f"{ROOT}/{warehouse_id}/{what}", body=body, probes=True)


def activate(client: Client, warehouse_id: str) -> None:
    """Let a warehouse be used."""
    _set_status(client, warehouse_id, "activate")


def deactivate(client: Client, warehouse_id: str) -> None:
    """Hide a warehouse from its users."""
    _set_status(client, warehouse_id, "deactivate")


def _set_status(client: Client, warehouse_id: str, verb: str) -> None:
    """Set the status and read the warehouse.

    Servers cache the status for a minute and do not update that cache here; reading the warehouse updates it.
    """
    client.call("POST", f"{ROOT}/{warehouse_id}/{verb}")
    get(client, warehouse_id)


def delete(client: Client, warehouse_id: str) -> None:
    """Delete an empty, unprotected warehouse without unfinished tasks."""
    client.call("DELETE", f"{ROOT}/{warehouse_id}")
