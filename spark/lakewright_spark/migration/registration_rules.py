"""Tables whose metadata Lakekeeper refuses to register, or to change later. A plan leaves them out before the fence.

Source: Lakekeeper 0.13.3 (`Location::from_str`, `validate_table_properties`, its foreign keys), and iceberg-rust
(`TableMetadata::try_normalize`, `PartitionSpecBuilder`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1

from lakewright_spark.migration.ledger import Method

_ONE_MINUTE = 60_000
_SUPPORTED = (
    "write.metadata.compression-codec",
    "write.metadata.delete-after-commit.enabled",
    "write.metadata.previous-versions-max",
)
_TIMES = {"year", "month", "day", "hour"}


def find_registration_obstacles(table: Table, method: Method) -> list[str]:
    """Return the parts of a table's metadata that Lakekeeper refuses, each with a solution."""
    metadata = table.metadata
    return [
        *(_list_location_obstacles(metadata.location) if method is Method.REGISTER else ()),
        *_list_property_obstacles(metadata),
        *_list_reference_obstacles(metadata),
        *_list_log_obstacles(metadata),
        *_list_partition_obstacles(metadata),
    ]


def _list_location_obstacles(location: str) -> Iterator[str]:
    segments = location.partition("://")[2].rstrip("/").split("/")
    is_visible = all(unicodedata.category(letter) not in {"Cc", "Cf"} for letter in location)
    if not is_visible or "#" in location or "?" in location or {"", ".", ".."} & set(segments):
        yield (
            f"the location {location!r}, with an empty part, `.`, `..`, `#`, `?` or an invisible character: migrate it "
            "with --copy"
        )


def _list_property_obstacles(metadata: TableMetadata) -> Iterator[str]:
    names = [
        name
        for name in sorted(metadata.properties)
        if name.startswith(("write.metadata", "write.data.path"))
        and not name.startswith("write.metadata.metrics.")
        and name not in _SUPPORTED
    ]
    if names:
        yield f"properties that the server does not support, {', '.join(names)}: remove them"


def _list_reference_obstacles(metadata: TableMetadata) -> Iterator[str]:
    snapshots = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    schemas = {schema.schema_id for schema in metadata.schemas}
    statistics = [*metadata.statistics, *metadata.partition_statistics]
    if lost := sorted({file.snapshot_id for file in statistics} - snapshots):
        yield f"statistics of snapshots that it lacks, {_join(lost)}: remove these statistics"
    lost = [one.snapshot_id for one in metadata.snapshots if one.schema_id not in {None, *schemas}]
    if lost:
        yield f"snapshots whose schemas it lacks, {_join(lost)}: expire these snapshots"
    if names := sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id not in snapshots):
        yield f"branches or tags at snapshots that it lacks, {', '.join(names)}: drop them"
    main = metadata.refs.get("main")
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        yield "a branch main that is not at the current snapshot: set the current snapshot again"
    last = None if isinstance(metadata, TableMetadataV1) else metadata.last_sequence_number
    newer = [one.snapshot_id for one in metadata.snapshots if last is not None and (one.sequence_number or 0) > last]
    if newer:
        yield f"snapshots above its last sequence number {last}, {_join(newer)}: migrate a copy of its rows"
    if any(order.order_id == 0 and order.fields for order in metadata.sort_orders):
        yield "fields in sort order 0, which means unsorted: migrate a copy of its rows"


def _list_log_obstacles(metadata: TableMetadata) -> Iterator[str]:
    for name, log in (("snapshots", metadata.snapshot_log), ("metadata files", metadata.metadata_log)):
        times = [entry.timestamp_ms for entry in log]
        if any(later - earlier < -_ONE_MINUTE for earlier, later in pairwise(times)):
            yield f"a log of {name} that is not in the order of time: migrate it once the log no longer has them"


def _list_partition_obstacles(metadata: TableMetadata) -> Iterator[str]:
    spec, schema = metadata.spec(), metadata.schema()
    columns = schema.field_ids
    fields: tuple[Any, ...] = spec.fields
    kinds = [(int(field.source_id), str(field.transform)) for field in fields]
    groups = [(source, "time" if kind in _TIMES else kind) for source, kind in kinds]
    if any(source not in columns for source, _ in kinds):
        yield (
            "a partition field whose column was dropped: upgrade it to format version 2 and remove the field with "
            "ALTER TABLE"
        )
    elif len(set(groups)) < len(groups):
        yield (
            "two equal partition fields of a column, such as two that were removed under format version 1, so that the "
            "server would refuse every commit: upgrade it to format version 2 and remove a field with ALTER TABLE"
        )


def _join(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
