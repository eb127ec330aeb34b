"""Whether a run may read a table in somebody else's warehouse, by the table's `sharing` policy.

A rail against mistakes, not a wall: who reads what is the catalog's to enforce, by its grants.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import WarehouseRefusedError
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.run.permissions import may_write
from lakewright_spark.table_identifier import TableIdentifier


def check_shared(
    config: CatalogConfig, table: TableIdentifier, properties: Mapping[str, str], submitter: str | None
) -> None:
    """Raise WarehouseRefusedError for a table with `sharing: false`, unless the run may write to its warehouse.

    `properties` are the table's. Raises PolicyRefusedError if a policy among them cannot be read.
    """
    warehouse = config.warehouse(table.warehouse)
    if may_write(warehouse, submitter):
        return
    resolved = PolicyTables(config, table.warehouse).of(table, dict(properties))
    if resolved.policies.sharing is False:
        who = repr(submitter) if submitter else "nobody in particular"
        raise WarehouseRefusedError(
            f"table {table} is not shared, by {resolved.sources['sharing']}: warehouse {warehouse.name} is "
            f"{warehouse.owner!r}'s, and the run is submitted by {who}"
        )
