"""Calls about warehouses, and the dry runs of their changes, which check all and change nothing."""

from collections.abc import Mapping
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NoSuchPathError, NotFoundError

ROOT = "/management/v1/warehouse"

WarehouseResponse = dict[str, Any]
"""A warehouse in the server's JSON."""


def read_id(response: WarehouseResponse) -> str:
    """Return the id of a warehouse from its response."""
    return str(response.get("warehouse-id") or response["id"])


NAME_TAKEN = frozenset({"WarehouseAlreadyExists", "WarehouseNameAlreadyExists"})
"""Types of refusals because another warehouse of the project, active or not, has the name."""


def create(client: Client, project_id: str, body: Mapping[str, Any]) -> WarehouseResponse:
    """Create a warehouse. The server probes its storage."""
    client.lists.forget_run()
    return client.json("POST", ROOT, project=project_id, body=body, probes=True, idempotent=False)


def get(client: Client, warehouse_id: str) -> WarehouseResponse | None:
    """Return a warehouse by id; None if it does not exist or is hidden."""
    try:
        return client.json("GET", f"{ROOT}/{warehouse_id}")
    except NotFoundError:
        return None


def list_all(client: Client, project_id: str) -> list[WarehouseResponse]:
    """Return the visible warehouses of a project. Servers before 0.14 list active warehouses only."""
    every = client.server().lists_inactive_warehouses
    params = {"warehouseStatus": ["active", "inactive"]} if every else None
    return cast(list[WarehouseResponse], client.json("GET", ROOT, project=project_id, params=params)["warehouses"])


def get_cached(client: Client, project_id: str, warehouse_id: str) -> WarehouseResponse | None:
    """Return a warehouse from the shared list, or by a separate call if the list lacks it."""
    return list_cached(client, project_id).get(warehouse_id) or get(client, warehouse_id)


def list_cached(client: Client, project_id: str) -> dict[str, WarehouseResponse]:
    """Return the shared list of a project's warehouses by id; none if the server refuses the list."""
    shared_list = client.lists.get_cached_unless_refused(
        (client, "warehouses", project_id),
        lambda: {read_id(warehouse): warehouse for warehouse in list_all(client, project_id)},
    )
    return shared_list or {}


def find_by_name(client: Client, project_id: str, name: str) -> WarehouseResponse | None:
    """Return the listed warehouse with this name, ignoring case. Servers before 0.14 list active warehouses only."""
    folded_name = name.casefold()
    return next((w for w in list_all(client, project_id) if str(w["name"]).casefold() == folded_name), None)


CHANGE_SUBRESOURCES: Mapping[str, tuple[str, ...]] = {
    "status": ("activate", "deactivate"),
    "storage-credential": ("storage", "storage-credential"),
}
"""Subresources that make a change, by the change's name. Any other change is made by the subresource of its name."""


def change(client: Client, warehouse_id: str, subresource: str, body: Mapping[str, Any]) -> None:
    """Make an idempotent change: rename, delete-profile, protection, format-version-policy."""
    client.call("POST", f"{ROOT}/{warehouse_id}/{subresource}", body=body)


def change_storage(client: Client, warehouse_id: str, subresource: str, body: Mapping[str, Any]) -> None:
    """Replace storage profile and credential (`storage`) or the credential only (`storage-credential`); probed."""
    client.lists.forget_run()
    client.call("POST", f"{ROOT}/{warehouse_id}/{subresource}", body=body, probes=True)


def activate(client: Client, warehouse_id: str) -> None:
    """Activate a warehouse."""
    _set_status(client, warehouse_id, "activate")


def deactivate(client: Client, warehouse_id: str) -> None:
    """Deactivate a warehouse, which hides it from its users."""
    _set_status(client, warehouse_id, "deactivate")


def _set_status(client: Client, warehouse_id: str, verb: str) -> None:
    """Set the status of a warehouse, and read the warehouse.

    Servers cache the status for a minute. Setting it does not update that cache, reading the warehouse does.
    """
    client.call("POST", f"{ROOT}/{warehouse_id}/{verb}")
    get(client, warehouse_id)


def delete(client: Client, warehouse_id: str) -> None:
    """Delete an empty, unprotected warehouse that has no unfinished tasks."""
    client.call("DELETE", f"{ROOT}/{warehouse_id}")


Reported = dict[str, Any]
"""A check: `name`, `status` (passed, failed or skipped), and `reason` or `error`."""


def validate_creation(client: Client, project_id: str, body: Mapping[str, Any]) -> list[Reported] | None:
    """Return the checks of a create with this body; None if the server has no dry run."""
    return _report(client, f"{ROOT}-creation-validation", body, project_id)


def validate_storage(client: Client, warehouse_id: str, body: Mapping[str, Any]) -> list[Reported] | None:
    """Return the checks of a change of storage profile and credential; None if the server has no dry run."""
    return _report(client, f"{ROOT}/{warehouse_id}/storage/validate-profile", body, None)


def _report(client: Client, path: str, body: Mapping[str, Any], project_id: str | None) -> list[Reported] | None:
    if not client.server().has_dry_runs:
        return None
    try:
        response = client.json("POST", path, project=project_id, body=body, probes=True)
    except NoSuchPathError:
        return None  # a development build that already reports the newer version
    return cast(list[Reported], response["checks"])
