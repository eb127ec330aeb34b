"""Files of other tables under a table's location, which another catalog owns since a migration in place.

A migration leaves an object that names the new owner (`lakewright_spark.handed_over`). The old catalog may create a
table of the same name at the same default location afterwards, and each table's files look like orphans of the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from py4j.protocol import Py4JJavaError

from lakewright_spark import handed_over
from lakewright_spark.errors import SharedLocationError
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line

FIRST_METADATA = r"/metadata/00000-[^/]*\.metadata\.json$"
"""Regular expression for the address of the first metadata file of a table."""
TRACES = f"{handed_over.PATTERN}|{FIRST_METADATA}"
"""Regular expression for addresses that show another table under a location."""


def check_traces(opened: IcebergTable, traces: Iterable[str]) -> None:
    """Raise SharedLocationError if a file that matches `TRACES` belongs to another table.

    Args:
        opened: The table.
        traces: Addresses under the table's location that its metadata does not refer to.
    """
    paths = sorted(traces)
    owners = {path: uuid for path in paths if (uuid := handed_over.find_uuid(path)) is not None}
    for path, uuid in owners.items():
        if uuid != opened.uuid.lower():
            raise SharedLocationError(
                f"its location has files of {_describe_owner(opened, path)}, which a migration gave away in place "
                f"({path}): give this table a location of its own. If that catalog has lost the table, delete the "
                "object"
            )
    if opened.uuid.lower() in owners.values():
        _check_first_metadata(opened, [path for path in paths if path not in owners])


def _check_first_metadata(opened: IcebergTable, paths: Collection[str]) -> None:
    """Raise SharedLocationError if the old catalog created a table at the location of a table that it gave away."""
    parser = opened.jvm.org.apache.iceberg.TableMetadataParser
    for path in paths:
        try:
            uuid = parser.read(opened.java.io(), path).uuid()
        except Py4JJavaError:
            uuid = None
        if uuid is None or uuid.lower() != opened.uuid.lower():
            raise SharedLocationError(
                f"its location has files of another table, which the old catalog created after the migration ({path}): "
                "give that table a location of its own. If no catalog has that table, delete its metadata file"
            )


def _describe_owner(opened: IcebergTable, path: str) -> str:
    try:
        content = opened.java.io().newInputFile(path).newStream().readAllBytes()
    except Py4JJavaError as error:
        return f"a table whose owner cannot be read ({first_line(error)})"
    owner = handed_over.parse_document(bytes(content))
    return f"table {owner.table} of warehouse {owner.warehouse} of {owner.catalog}" if owner else "another table"
