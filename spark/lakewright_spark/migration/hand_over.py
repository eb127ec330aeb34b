"""Record under a table's location that the table belongs to the target of a migration in place."""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.table import Table

from lakewright_spark.errors import MigrationError
from lakewright_spark.handed_over import HandedOverTable, build_address, parse_document
from lakewright_spark.migration.endpoint import Endpoint


def record_owner(table: Table, target: Endpoint, run: str, save_previous: Callable[[str], None]) -> None:
    """Write the object that names the target as owner of a table's files. An equal object is not written again.

    Args:
        table: The table in the target, whose credentials write the object.
        target: The target.
        run: Id of the migration.
        save_previous: Gets the document of an earlier migration before it is overwritten, or an empty text.

    Raises:
        MigrationError: The store refused the object.
    """
    warehouse_id = target.config.warehouse(target.warehouse).id if target.config.kind == "lakekeeper" else None
    name = ".".join(table.name())
    document = HandedOverTable(name, target.warehouse, target.config.uri, warehouse_id, run).to_document()
    address = build_address(table.location(), str(table.metadata.table_uuid))
    try:
        previous = _read(table, address)
        if previous == document:
            return
        if previous is None or not _is_of_run(previous, run):
            save_previous((previous or b"").decode(errors="replace"))
        with table.io.new_output(address).create(overwrite=True) as stream:
            stream.write(document)
    except (OSError, ValueError) as error:
        raise MigrationError(
            f"{name}: the new owner of its files could not be recorded at {address}: "
            f"{' '.join(str(error).split())}. Let {target} write there"
        ) from error


def forget_owner(table: Table, run: str, previous: str) -> None:
    """Delete the object if this migration wrote it, or restore its earlier document: the source keeps the table.

    Args:
        table: The table, whose credentials are used.
        run: Id of the migration.
        previous: The document of an earlier migration; empty if no object existed.

    Raises:
        MigrationError: The store refused.
    """
    address = build_address(table.location(), str(table.metadata.table_uuid))
    try:
        document = _read(table, address)
        if document is None or not _is_of_run(document, run):
            return
        if previous:
            with table.io.new_output(address).create(overwrite=True) as stream:
                stream.write(previous.encode())
        else:
            table.io.delete(address)
    except (OSError, ValueError) as error:
        change = "restored" if previous else "deleted"
        correction = f"Write its earlier content: {' '.join(previous.split())}" if previous else "Delete it"
        raise MigrationError(
            f"{address} names the target as owner of the table's files and could not be {change}: "
            f"{' '.join(str(error).split())}. {correction}"
        ) from error


def _is_of_run(document: bytes, run: str) -> bool:
    owner = parse_document(document)
    return owner is not None and owner.migration == run


def _read(table: Table, address: str) -> bytes | None:
    file = table.io.new_input(address)
    if not file.exists():
        return None
    with file.open() as stream:
        return stream.read()
