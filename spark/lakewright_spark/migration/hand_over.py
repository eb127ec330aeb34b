"""Record under a table's location that the table belongs to the target of a migration in place."""

from __future__ import annotations

from pyiceberg.table import Table

from lakewright_spark.errors import MigrationError
from lakewright_spark.handed_over import HandedOverTable, build_address, parse_document
from lakewright_spark.migration.endpoint import Endpoint


def record_owner(table: Table, target: Endpoint, run: str) -> None:
    """Write the object that names the target as owner of a table's files. An equal object is not written again.

    Args:
        table: The table in the target, whose credentials write the object.
        target: The target.
        run: Id of the migration.

    Raises:
        MigrationError: The store refused the object.
    """
    warehouse_id = target.config.warehouse(target.warehouse).id if target.config.kind == "lakekeeper" else None
    name = ".".join(table.name())
    document = HandedOverTable(name, target.warehouse, target.config.uri, warehouse_id, run).to_document()
    address = build_address(table.location(), str(table.metadata.table_uuid))
    try:
        if _read(table, address) == document:
            return
        with table.io.new_output(address).create(overwrite=True) as stream:
            stream.write(document)
    except (OSError, ValueError) as error:
        raise MigrationError(
            f"{name}: the new owner of its files could not be recorded at {address}: "
            f"{' '.join(str(error).split())}. Let {target} write there"
        ) from error


def forget_owner(table: Table, run: str) -> None:
    """Delete the object if this migration wrote it, since the source keeps the table.

    Args:
        table: The table in the source, whose credentials delete the object.
        run: Id of the migration.

    Raises:
        MigrationError: The store refused to delete the object.
    """
    address = build_address(table.location(), str(table.metadata.table_uuid))
    try:
        document = _read(table, address)
        owner = parse_document(document) if document is not None else None
        if owner is not None and owner.migration == run:
            table.io.delete(address)
    except (OSError, ValueError) as error:
        raise MigrationError(
            f"{'.'.join(table.name())}: {address} could not be deleted: {' '.join(str(error).split())}"
        ) from error


def _read(table: Table, address: str) -> bytes | None:
    file = table.io.new_input(address)
    if not file.exists():
        return None
    with file.open() as stream:
        return stream.read()
