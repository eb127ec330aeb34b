"""Tables whose metadata Lakekeeper refuses to register, or to change later. A plan leaves them out before the fence.

Source: Lakekeeper 0.13.3 (`Location::from_str`, `validate_table_properties`, its foreign keys), and iceberg-rust
(`TableMetadata::try_normalize`, `PartitionSpecBuilder`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import MetadataLogEntry, SnapshotLogEntry

from lakewright_spark.migration.ledger import Method

_ONE_MINUTE = 60_000
_SUPPORTED = (
    "write.metadata.compression-codec",
    "write.metadata.delete-after-commit.enabled",
    "write.metadata.previous-versions-max",
)
_TIMES = {"year", "month", "day", "hour"}


def find_registration_obstacles(table: Table, method: Method) -> list[str]:
    """Return the parts of a table's metadata that Lakekeeper refuses or drops, each with a solution."""
    metadata = table.metadata
    # A copy has another location, and no earlier metadata files.
    in_place = (
        *_list_location_obstacles(metadata.location),
        *_list_log_obstacles("metadata files", metadata.metadata_log, "migrate it with --copy"),
    )
    return [
        *(in_place if method is Method.REGISTER else ()),
        *_list_property_obstacles(metadata),
        *_list_reference_obstacles(metadata),
        *_list_log_obstacles("snapshots", metadata.snapshot_log, "migrate it once the log no longer has them"),
        *_list_partition_obstacles(metadata),
        *_list_partition_name_obstacles(metadata),
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
    is_version_1 = isinstance(metadata, TableMetadataV1)
    yield from _list_dropped_refs(metadata) if is_version_1 else _list_ref_obstacles(metadata, snapshots)
    last = None if isinstance(metadata, TableMetadataV1) else metadata.last_sequence_number
    newer = [one.snapshot_id for one in metadata.snapshots if last is not None and (one.sequence_number or 0) > last]
    if newer:
        yield f"snapshots above its last sequence number {last}, {_join(newer)}: migrate a copy of its rows"
    if any(order.order_id == 0 and order.fields for order in metadata.sort_orders):
        yield "fields in sort order 0, which means unsorted: migrate a copy of its rows"


def _list_ref_obstacles(metadata: TableMetadata, snapshots: set[int]) -> Iterator[str]:
    if names := sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id not in snapshots):
        yield f"branches or tags at snapshots that it lacks, {', '.join(names)}: drop them"
    main = metadata.refs.get(MAIN_BRANCH)
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        yield "a branch main that is not at the current snapshot: set the current snapshot again"


def _list_dropped_refs(metadata: TableMetadata) -> Iterator[str]:
    """Yield the branches and tags of format version 1, except a branch `main` without a retention."""
    main = {"snapshot-id": metadata.current_snapshot_id, "type": "branch"}
    names = sorted(
        name
        for name, ref in metadata.refs.items()
        if name != MAIN_BRANCH or ref.model_dump(mode="json", by_alias=True, exclude_none=True) != main
    )
    if names:
        yield (
            f"branches, tags or retentions that the server drops under format version 1, {', '.join(names)}: upgrade "
            "it to format version 2"
        )


def _list_log_obstacles(name: str, log: Sequence[SnapshotLogEntry | MetadataLogEntry], solution: str) -> Iterator[str]:
    times = [entry.timestamp_ms for entry in log]
    if any(later - earlier < -_ONE_MINUTE for earlier, later in pairwise(times)):
        yield f"a log of {name} that is not in the order of time: {solution}"


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


def _list_partition_name_obstacles(metadata: TableMetadata) -> Iterator[str]:
    schema = metadata.schema()
    numbers = {schema.find_column_name(number): number for number in schema.field_ids}
    fields: tuple[Any, ...] = metadata.spec().fields
    names = [
        str(field.name)
        for field in fields
        if field.name in numbers and (str(field.transform), int(field.source_id)) != ("identity", numbers[field.name])
    ]
    if names:
        yield (
            f"partition fields that have the name of a column, {', '.join(names)}, so that the server would refuse "
            "every commit: rename them, or upgrade it to format version 2 and remove them with ALTER TABLE"
        )


def _join(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
