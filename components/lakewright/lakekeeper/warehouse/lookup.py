"""Lookups of warehouses."""

from typing import Literal

from lakewright.lakekeeper.api.connection.errors import InvalidLookupError, NothingFoundError, UnsupportedServerError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.server.lookup_base import Server, as_output, format_names, reach
from lakewright.lakekeeper.warehouse.model import WarehouseInfo, read_info


def get_warehouses(
    *, server: Server, project_id: str, status: Literal["active", "inactive", "any"] = "any"
) -> list[WarehouseInfo]:
    """Return the warehouses of a project that this identity may see, sorted by name.

    Servers before 0.14 list active warehouses only, so `any` leaves out inactive warehouses there.

    Raises:
        UnsupportedServerError: If `status` is `inactive` and the server does not list inactive warehouses.
    """
    client = reach(server)
    if status == "inactive" and not client.server().lists_inactive_warehouses:
        raise UnsupportedServerError(
            f"inactive warehouses are listed by Lakekeeper 0.14 and newer; {client.endpoint} runs"
            f" {client.server().version_text}. Look up each inactive warehouse by `warehouse_id`."
        )
    warehouse_infos = [read_info(warehouse) for warehouse in warehouses.list_all(client, project_id)]
    states = {"active": {True}, "inactive": {False}, "any": {True, False}}[status]
    return sorted(
        (warehouse for warehouse in warehouse_infos if warehouse.active in states), key=lambda warehouse: warehouse.name
    )


def get_warehouse(
    *, server: Server, warehouse_id: str | None = None, project_id: str | None = None, name: str | None = None
) -> WarehouseInfo:
    """Return a warehouse by its id, or by project and name.

    Every server finds an inactive warehouse by its id. Servers from 0.14 on also find it by its name.

    Raises:
        InvalidLookupError: If neither the id nor both project and name are given.
        NothingFoundError: If there is no such warehouse, or it is hidden from this identity.
    """
    client = reach(server)
    if warehouse_id is not None:
        warehouse = warehouses.get(client, warehouse_id)
        if warehouse is None:
            raise NothingFoundError(
                f"warehouse {warehouse_id} is not at {client.endpoint}, or hidden from this identity"
            )
        return read_info(warehouse)
    if project_id is None or name is None:
        raise InvalidLookupError("a warehouse is looked up by `warehouse_id`, or by `project_id` and `name`")
    project_warehouses = warehouses.list_all(client, project_id)
    warehouse = next(
        (warehouse for warehouse in project_warehouses if str(warehouse["name"]).casefold() == name.casefold()), None
    )
    if warehouse is None:
        missing = NothingFoundError(
            f"warehouse `{name}` is not in project {project_id} at {client.endpoint}, or hidden from this identity."
            f" Available: {format_names(str(warehouse['name']) for warehouse in project_warehouses)}."
        )
        if not client.server().lists_inactive_warehouses:
            missing.add(f"Inactive warehouses are found only by `warehouse_id`, since {client.server().unlisted}.")
        raise missing
    return read_info(warehouse)


get_warehouse_output = as_output(get_warehouse)
get_warehouses_output = as_output(get_warehouses)
