"""The warehouse that a run writes to: the submitter's own, unless a grant allows another warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import ConfigMissingError, WarehouseRefusedError
from lakewright_spark.table_identifier import TableIdentifier


def choose_run_warehouse(config: CatalogConfig, submitter: str | None, requested: str | None) -> CatalogWarehouse:
    """Return the warehouse of a run, out of the warehouses of the computing unit.

    A unit that was created for a single warehouse (Design 1) has no other. A unit with several warehouses (Design 2)
    takes the requested warehouse, else the submitter's own. A warehouse without an owner accepts every run of the
    tenant; a warehouse with an owner accepts runs of the owner and of principals that a grant names.

    Raises:
        WarehouseRefusedError: The unit does not have the warehouse, or the submitter may not write to it.
        ConfigMissingError: The run requests no warehouse, and there is no default.
    """
    if requested is not None:
        try:
            warehouse = config.warehouse(requested)
        except KeyError as error:
            raise WarehouseRefusedError(error.args[0]) from None
    else:
        warehouse = _choose_default_warehouse(config, submitter)
    if not may_write(warehouse, submitter):
        submitter_text = f"{submitter!r}" if submitter else "an unnamed submitter"
        raise WarehouseRefusedError(
            f"warehouse {warehouse.name} is {warehouse.owner!r}'s, and the run is submitted by {submitter_text}, "
            "who has no grant to write there: choose one of the submitter's own, or grant it in the tenant's spec"
        )
    return warehouse


def may_write(warehouse: CatalogWarehouse, submitter: str | None) -> bool:
    """Return whether runs of this submitter may write to the warehouse now."""
    if warehouse.owner is None or submitter == warehouse.owner:
        return True
    if submitter is None or submitter not in warehouse.writers:
        return False
    end = warehouse.writer_ends.get(submitter)
    return end is None or datetime.now(UTC) < end


def _choose_default_warehouse(config: CatalogConfig, submitter: str | None) -> CatalogWarehouse:
    own_warehouses = [
        warehouse for warehouse in config.warehouses if submitter is not None and warehouse.owner == submitter
    ]
    for candidates in (own_warehouses, config.warehouses):
        if len(candidates) == 1:
            return candidates[0]
    names = ", ".join(warehouse.name for warehouse in own_warehouses or config.warehouses) or "none"
    raise ConfigMissingError(f"tenant {config.tenant} has several warehouses, give --warehouse: {names}")


def check_shared(
    config: CatalogConfig, table: TableIdentifier, properties: Mapping[str, str], submitter: str | None
) -> None:
    """Raise WarehouseRefusedError for a table with `sharing: false`, unless the run may write to its warehouse.

    `properties` are the table's. Raises PolicyRefusedError if a policy among them cannot be read.
    """
    warehouse = config.warehouse(table.warehouse)
    if may_write(warehouse, submitter):
        return
    from lakewright_spark.pyiceberg_client.table_policies import PolicyTables  # noqa: PLC0415 - loads PyIceberg

    resolved = PolicyTables(config, table.warehouse).resolve_policies(table, dict(properties))
    if resolved.policies.sharing is False:
        submitter_text = repr(submitter) if submitter else "an unnamed submitter"
        raise WarehouseRefusedError(
            f"table {table} is not shared, by {resolved.sources['sharing']}: warehouse {warehouse.name} is "
            f"{warehouse.owner!r}'s, and the run is submitted by {submitter_text}"
        )
