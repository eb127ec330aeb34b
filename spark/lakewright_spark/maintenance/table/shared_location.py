"""Files of other tables under a table's location, which another catalog owns since a migration in place.

A migration leaves an object that names the new owner (`lakewright_spark.handed_over`). The old catalog may create a
table of the same name at the same default location afterwards, and each table's files look like orphans of the other.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator

from py4j.protocol import Py4JJavaError

from lakewright_spark import handed_over
from lakewright_spark.errors import SharedLocationError
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, iterate
from lakewright_spark.maintenance.table.metadata import Metadata

MAX_READ = 50
"""Metadata files that are read, beside the first metadata file of each table."""
_METADATA_FILE = re.compile(r"\.metadata\.json(?:\.gz)?$")
_FIRST_FILE = re.compile(r"/00000-[^/]*$")


def check_location(opened: IcebergTable, owner_objects: Iterable[str]) -> None:
    """Raise SharedLocationError if another table has files under a table's location.

    Args:
        opened: The table.
        owner_objects: Addresses under the table's location that match `handed_over.PATTERN`.
    """
    owners = {path: uuid for path in sorted(owner_objects) if (uuid := handed_over.find_uuid(path)) is not None}
    for path, uuid in owners.items():
        if uuid != opened.uuid.lower():
            raise SharedLocationError(
                f"its location has files of {_describe_owner(opened, path)}, which a migration gave away in place "
                f"({path}): give this table a location of its own. If that catalog has lost the table, delete the "
                "object"
            )
    if opened.uuid.lower() in owners.values():
        _check_metadata(opened)


def _check_metadata(opened: IcebergTable) -> None:
    """Raise SharedLocationError if the old catalog created a table at the location of a table that it gave away."""
    parser, io = opened.find_class("org.apache.iceberg.TableMetadataParser"), opened.java.io()
    for path in _list_unreferenced_metadata(opened):
        try:
            uuid = parser.read(io, path).uuid()
        except Py4JJavaError:
            if not io.newInputFile(path).exists():
                continue  # a commit deleted it
            uuid = None
        if uuid is None or uuid.lower() != opened.uuid.lower():
            raise SharedLocationError(
                f"its location has files of another table, which the old catalog created after the migration ({path}): "
                "give that table a location of its own. If no catalog has that table, delete its metadata file"
            )


def _list_unreferenced_metadata(opened: IcebergTable) -> Iterator[str]:
    """Yield the first metadata files, then the newest metadata files, which the table's metadata does not refer to.

    A table whose commits delete earlier metadata files has no first metadata file after a few commits.
    """
    referenced = Metadata.read(opened).earlier_files
    files = (
        (file.createdAtMillis(), file.location())
        for file in iterate(opened.java.io().listPrefix(f"{opened.location}/metadata/"))
    )
    unreferenced = [file for file in files if _METADATA_FILE.search(file[1]) and file[1] not in referenced]
    yield from (path for _, path in unreferenced if _FIRST_FILE.search(path))
    yield from (path for _, path in heapq.nlargest(MAX_READ, unreferenced))


def _describe_owner(opened: IcebergTable, path: str) -> str:
    try:
        content = opened.java.io().newInputFile(path).newStream().readAllBytes()
    except Py4JJavaError as error:
        return f"a table whose owner cannot be read ({first_line(error)})"
    owner = handed_over.parse_document(bytes(content))
    return f"table {owner.table} of warehouse {owner.warehouse} of {owner.catalog}" if owner else "another table"
