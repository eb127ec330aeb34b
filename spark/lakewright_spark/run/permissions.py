"""Which warehouse a run writes to: the submitter's own, unless a grant says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import ConfigMissingError, WarehouseRefusedError
from lakewright_spark.table_identifier import TableIdentifier


def warehouse_of_run(config: CatalogConfig, submitter: str | None, asked: str | None) -> CatalogWarehouse:
    """The warehouse, out of those that the computing unit knows.

    A unit that was bound to one when it was made (Design 1) has no other to choose. A unit with several (Design 2)
    takes the one that was asked for, else the submitter's own. A warehouse without an owner is every run's of the
    tenant; one with an owner takes runs of the owner and of those whom a grant names. Raises WarehouseRefusedError
    for one that is not in the unit's list or not the submitter's to write to, ConfigMissingError where none was
    chosen.
    """
    if asked is not None:
        try:
            chosen = config.warehouse(asked)
        except KeyError as error:
            raise WarehouseRefusedError(error.args[0]) from None
    else:
        chosen = _unasked(config, submitter)
    if not may_write(chosen, submitter):
        who = f"{submitter!r}" if submitter else "an unnamed submitter"
        raise WarehouseRefusedError(
            f"warehouse {chosen.name} is {chosen.owner!r}'s, and the run is submitted by {who}, who has no grant to "
            "write there: choose one of the submitter's own, or grant it in the tenant's spec"
        )
    return chosen


def may_write(warehouse: CatalogWarehouse, submitter: str | None) -> bool:
    """Return whether runs of this submitter may write there."""
    return warehouse.owner is None or (submitter is not None and submitter in {warehouse.owner, *warehouse.writers})


def _unasked(config: CatalogConfig, submitter: str | None) -> CatalogWarehouse:
    own = [warehouse for warehouse in config.warehouses if submitter is not None and warehouse.owner == submitter]
    for candidates in (own, config.warehouses):
        if len(candidates) == 1:
            return candidates[0]
    names = ", ".join(warehouse.name for warehouse in own or config.warehouses) or "none"
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

    resolved = PolicyTables(config, table.warehouse).of(table, dict(properties))
    if resolved.policies.sharing is False:
        who = repr(submitter) if submitter else "an unnamed submitter"
        raise WarehouseRefusedError(
            f"table {table} is not shared, by {resolved.sources['sharing']}: warehouse {warehouse.name} is "
            f"{warehouse.owner!r}'s, and the run is submitted by {who}"
        )
