"""Find the newest value of a time column from a snapshot's manifests. Data files are not read.

Manifest lists have the bounds of partitions, and manifests have the bounds of columns in each data file. Manifests are
read from the newest on, until a value is recent enough; a manifest whose partitions end before the newest known value
is skipped.
Deleted rows count: their bounds remain in the manifests.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from lakewright.data_checks.result import NotEvaluatedError
from lakewright.data_checks.time_bounds import TimeColumn, TimePartition, end_of_partition, end_of_value
from lakewright.validation.documents import as_list, as_mapping

MAX_MANIFESTS = 500
"""Most manifests that are read for one check."""
_DELETED = 2
_DATA = 0


@dataclass
class NewestRows:
    """The newest rows, by the manifests."""

    newest: datetime | None = None
    """Newest value; None if no file has a value."""
    is_recent: bool = False
    """Whether it is recent enough. Reading stopped there, so newer values may exist."""
    without_bounds: int = 0
    """Data files whose metrics lack the column, so that they may have newer rows."""
    unread: int = 0
    """Manifests that were left out, as there are too many."""


def find_newest_rows(
    manifest_list: bytes,
    column: TimeColumn,
    partitions: Mapping[int, TimePartition],
    *,
    enough: datetime,
    read: Callable[[str], bytes],
) -> NewestRows:
    """Return the newest value of a column.

    Args:
        manifest_list: Content of the snapshot's manifest list.
        column: The column.
        partitions: Its partition fields by the id of their spec.
        enough: Reading stops at a value that is not older.
        read: Returns the content of a manifest.

    Raises:
        NotEvaluatedError: A manifest cannot be read.
    """
    rows = NewestRows()
    count = 0
    for manifest in _list_newest_first(manifest_list):
        partition = partitions.get(int(manifest.get("partition_spec_id") or 0))
        if _ends_before(manifest, column, partition, rows.newest):
            continue
        if count == MAX_MANIFESTS:
            rows.unread += 1
            continue
        count += 1
        for data_file in _list_data_files(read(str(manifest["manifest_path"]))):
            _add_data_file(rows, data_file, column, enough)
        if rows.is_recent:
            break
    return rows


def _add_data_file(rows: NewestRows, data_file: Mapping[str, Any], column: TimeColumn, enough: datetime) -> None:
    bounds = _parse_avro_map(data_file.get("upper_bounds"))
    if (bound := bounds.get(column.field_id)) is not None:
        value = end_of_value(column, bound)
        rows.newest = max(value, rows.newest) if rows.newest else value
        rows.is_recent = rows.is_recent or value >= enough
    elif _has_values(data_file, column):
        rows.without_bounds += 1


def _has_values(data_file: Mapping[str, Any], column: TimeColumn) -> bool:
    """Return whether a file without a bound may have a value. A file whose values are all null has none."""
    records = int(data_file.get("record_count") or 0)
    nulls = _parse_avro_map(data_file.get("null_value_counts")).get(column.field_id)
    return records > 0 and nulls != records


def _ends_before(
    manifest: Mapping[str, Any], column: TimeColumn, partition: TimePartition | None, newest: datetime | None
) -> bool:
    summaries = as_list(manifest.get("partitions"))
    if newest is None or partition is None or partition.position >= len(summaries):
        return False
    bound = as_mapping(summaries[partition.position]).get("upper_bound")
    return isinstance(bound, bytes) and end_of_partition(column, partition, bound) <= newest


def _list_newest_first(manifest_list: bytes) -> list[Mapping[str, Any]]:
    data_manifests = [
        manifest for manifest in _read_records(manifest_list) if int(manifest.get("content") or 0) == _DATA
    ]
    # Version 1 has no sequence numbers; writers put new manifests first.
    return sorted(data_manifests, key=lambda manifest: -int(manifest.get("sequence_number") or 0))


def _list_data_files(manifest: bytes) -> Iterator[Mapping[str, Any]]:
    for entry in _read_records(manifest):
        if entry.get("status") != _DELETED:
            yield as_mapping(entry.get("data_file"))


def _parse_avro_map(entries: object) -> dict[int, Any]:
    """Return a map of Avro whose keys are numbers. Avro writes it as a list of pairs."""
    pairs = [as_mapping(entry) for entry in as_list(entries)]
    return {int(pair["key"]): pair["value"] for pair in pairs}


def _read_records(content: bytes) -> list[Mapping[str, Any]]:
    import fastavro  # noqa: PLC0415 - slow to load

    try:
        return cast("list[Mapping[str, Any]]", list(fastavro.reader(io.BytesIO(content))))
    except (ValueError, EOFError, LookupError, TypeError, zlib.error) as error:
        reason = " ".join(str(error).split())[:200]
        raise NotEvaluatedError(f"a manifest of the table is damaged, or of a codec unknown here: {reason}") from None
