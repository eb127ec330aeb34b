"""Details of a table from its Iceberg metadata: ids, format, schema, partitioning, creator, times and versions.

OpenHouse's table model has the same properties (`GetTableResponseBody` of its tables service).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyiceberg.table import Table

_CREATOR = "owner"
"""Property in which Spark and Hive write the user that creates a table."""
_FIRST_METADATA = re.compile(r".*/0+-[^/]*")
"""Metadata files begin with their version; the first version is 0."""


@dataclass(frozen=True, kw_only=True)
class TableDetails:
    """Identity and history of a table. Times are UTC."""

    uuid: str
    location: str
    metadata_location: str
    """Address of the current metadata file, which is the version of the table."""
    format_version: int
    schema_id: int
    columns: int
    partition_fields: tuple[str, ...] = ()
    """Such as `day(created_at)`."""
    versions: int = 1
    """Metadata files that the metadata still names, with the current file."""
    creator: str | None = None
    """Property `owner`, which Spark writes; None if no property names the creator."""
    created_at: datetime | None = None
    """None if the metadata no longer names the first metadata file."""
    updated_at: datetime


def read_details(table: Table) -> TableDetails:
    """Return the details of a loaded table; nothing is read from the storage."""
    metadata = table.metadata
    updates = [(entry.metadata_file, entry.timestamp_ms) for entry in metadata.metadata_log]
    updates.append((table.metadata_location, metadata.last_updated_ms))
    first_file, first_ms = updates[0]
    partition_fields: tuple[Any, ...] = table.spec().fields  # PyIceberg does not type their transforms
    return TableDetails(
        uuid=str(metadata.table_uuid),
        location=metadata.location,
        metadata_location=table.metadata_location,
        format_version=metadata.format_version,
        schema_id=metadata.current_schema_id,
        columns=len(table.schema().fields),
        partition_fields=tuple(
            f"{field.transform}({table.schema().find_column_name(field.source_id)})" for field in partition_fields
        ),
        versions=len(updates),
        creator=metadata.properties.get(_CREATOR),
        created_at=_to_time(first_ms) if _FIRST_METADATA.fullmatch(first_file) else None,
        updated_at=_to_time(metadata.last_updated_ms),
    )


def _to_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
