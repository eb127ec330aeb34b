"""Compare a migrated table with its source: schemas, snapshots, references, rows, sums of columns, sampled rows."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import is_floating
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _read_all_delete_files,  # pyright: ignore[reportPrivateUsage]  # ArrowScan reads them only to leave rows out
)
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata

from lakewright_spark.errors import LakewrightSparkError, MigrationError
from lakewright_spark.pyiceberg_client.read_errors import describe_error
from lakewright_spark.pyiceberg_client.table_metadata import is_readable_only

SAMPLED_ROWS = 1000
"""Rows of each compared file whose values are compared one by one."""
SAMPLED_FILES = 3
NO_SNAPSHOT = -1
"""Stands for the snapshot of a table without rows."""

_TOKEN = "s3.session-token"  # noqa: S105  # name of a property


class Depth(Enum):
    """How much of the rows a verification reads."""

    FULL = "full"
    """All rows. Files that both tables have in one store are read once."""
    SAMPLE = "sample"
    """The rows of a few files."""
    METADATA = "metadata"
    """No rows: metadata and the list of files."""


@dataclass(frozen=True)
class ColumnSum:
    """Sums of one column, which do not depend on the order of the rows."""

    values: int = 0
    """Values that are not null."""
    checksum: int = 0
    """Sum of the CRC-32 of every value's text."""

    def add(self, column: pa.Array) -> ColumnSum:
        """Return the sums with further values."""
        values, total = self.values + len(column) - column.null_count, self.checksum
        counted: Any = pc.value_counts(_to_text(column))
        texts: list[bytes | None] = counted.field("values").cast(pa.large_binary()).to_pylist()
        counts: list[int] = counted.field("counts").to_pylist()
        for text, count in zip(texts, counts, strict=True):
            if text is not None:
                total += count * zlib.crc32(text)
        return ColumnSum(values, total)


@contextmanager
def explain_read_errors(table: Table) -> Generator[None]:
    """Turn errors of reading a table's files into MigrationError."""
    try:
        yield
    except LakewrightSparkError:
        raise
    except Exception as error:
        raise MigrationError(
            f"files of table {'.'.join(table.name())} at {table.metadata.location} cannot be read: "
            f"{describe_error(error)}"
        ) from error


def verify(
    source: Table, target: Table, depth: Depth, own_properties: Collection[str] = (), since: int | None = None
) -> str:
    """Compare a table with its source, and return what was compared.

    Manifests are read on both sides, each with its own credentials. If both tables have the same files in one store,
    each data file is read once, with the target's credentials: two reads of one file cannot differ. The number of rows
    is compared with the manifests then.

    Args:
        source: The table in the source catalog.
        target: The table in the target catalog, whose files are read with the target's credentials.
        depth: How many rows are read.
        own_properties: Names of properties that the target may have with other values.
        since: ID of the snapshot that was compared earlier, or `NO_SNAPSHOT`: only files of later snapshots are
            compared, without rows that these snapshots deleted. None: all files.

    Raises:
        MigrationError: They differ. The message names the differences.
    """
    if differences := find_metadata_differences(source, target, own_properties):
        raise MigrationError(f"the tables differ: {'; '.join(differences)}")
    if is_readable_only(source) or source.current_snapshot() is None:
        return "metadata" if source.current_snapshot() else "metadata, no rows"
    snapshots = None if since is None else list_later_snapshots(source, since)
    files = _pair_files(source, target, snapshots)
    is_one_store = has_same_store(source, target)
    if snapshots is None and not is_one_store and _list_deletes(source) != _list_deletes(target):
        raise MigrationError("the files with deleted rows differ")
    rows = sum(source_file.file.record_count for source_file, _ in files)
    if depth is Depth.METADATA:
        return f"metadata, {len(files)} files"
    data_files = [pair for pair in files if pair[0].file.content is DataFileContent.DATA]
    compared = data_files if depth is Depth.FULL else data_files[:SAMPLED_FILES]
    if is_one_store and all(_list_paths(a) == _list_paths(b) for a, b in compared):
        columns = _read_rows(target, [target_file for _, target_file in compared])
    else:
        columns = _compare_rows(source, target, compared)
    return f"{columns} columns in {len(compared)} of {len(files)} files with {rows} rows"


def has_same_store(source: Table, target: Table) -> bool:
    """Return whether two tables have the same metadata file in the same store.

    Two permanent keys may belong to two stores at one address, as tenants of Ceph do: such stores count as different.
    Temporary credentials, and access without keys, do not show the store, and count as access to the same store.
    """
    location = source.metadata_location
    if location != target.metadata_location or location.partition("://")[0] not in {"s3", "s3a", "s3n", "file"}:
        return False
    properties = [table.io.properties for table in (source, target)]
    keys = {item["s3.access-key-id"] for item in properties if "s3.access-key-id" in item and _TOKEN not in item}
    return len({item.get("s3.endpoint") for item in properties}) == 1 and len(keys) < 2


def find_metadata_differences(source: Table, target: Table, own_properties: Collection[str] = ()) -> list[str]:
    """Return a text for each part of the metadata that differs. Servers list the parts in any order."""

    def list_properties(table: Table) -> dict[str, str]:
        return {name: value for name, value in table.properties.items() if name not in own_properties}

    expected, actual = source.metadata, target.metadata
    parts: dict[str, tuple[object, object]] = {
        "UUID": (expected.table_uuid, actual.table_uuid),
        "format version": (expected.format_version, actual.format_version),
        "schema": (expected.current_schema_id, actual.current_schema_id),
        "schemas": ({s.schema_id: s for s in expected.schemas}, {s.schema_id: s for s in actual.schemas}),
        "partition specs": (
            {s.spec_id: s for s in expected.partition_specs},
            {s.spec_id: s for s in actual.partition_specs},
        ),
        "sort orders": ({s.order_id: s for s in expected.sort_orders}, {s.order_id: s for s in actual.sort_orders}),
        "properties": (list_properties(source), list_properties(target)),
        "current snapshot": (expected.current_snapshot_id, actual.current_snapshot_id),
        "snapshots": (_list_snapshots(expected), _list_snapshots(actual)),
        "branches and tags": (expected.refs, actual.refs),
    }
    if source.metadata_location == target.metadata_location:  # a copy has another location
        parts["location"] = (expected.location.rstrip("/"), actual.location.rstrip("/"))
    return [f"{name}: expected {a}, found {b}" for name, (a, b) in parts.items() if a != b]


def _list_snapshots(metadata: TableMetadata) -> dict[int, tuple[object, ...]]:
    """Return the parts of each snapshot that decide about its rows. Manifest lists are relative to the location.

    Servers respond from their own records: that two tables have one metadata file does not show that they are equal.
    """
    return {
        snapshot.snapshot_id: (
            snapshot.sequence_number,
            snapshot.parent_snapshot_id,
            snapshot.schema_id,
            snapshot.manifest_list.removeprefix(metadata.location.rstrip("/")),
        )
        for snapshot in metadata.snapshots
    }


def find_snapshot(table: Table) -> int:
    """Return the ID of a table's current snapshot, or `NO_SNAPSHOT`."""
    current = table.current_snapshot()
    return current.snapshot_id if current else NO_SNAPSHOT


def list_later_snapshots(table: Table, since: int) -> set[int] | None:
    """Return the snapshots between an earlier snapshot and the current snapshot, with the current snapshot.

    Returns:
        None: The current snapshot does not follow the earlier snapshot, as after a rollback or an expiration.
    """
    later: set[int] = set()
    snapshot = table.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != since:
        later.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
        if snapshot is None and (parent is not None or since != NO_SNAPSHOT):
            return None
    return later


def _pair_files(
    source: Table, target: Table, snapshots: Collection[int] | None
) -> list[tuple[FileScanTask, FileScanTask]]:
    """Return each file of the source with its file in the target.

    Raises:
        MigrationError: The files differ in their names, rows or sizes.
    """
    pairs: list[tuple[FileScanTask, FileScanTask]] = []
    planned_files = (_plan_files(table, snapshots) for table in (source, target))
    for source_file, target_file in zip_longest(*planned_files):
        if (
            source_file is None
            or target_file is None
            or _describe(source, source_file) != _describe(target, target_file)
        ):
            raise MigrationError(f"the files differ: {_format(source, source_file)} and {_format(target, target_file)}")
        pairs.append((source_file, target_file))
    return pairs


def _list_paths(task: FileScanTask) -> set[str]:
    return {task.file.file_path, *(file.file_path for file in task.delete_files)}


def _plan_files(table: Table, snapshots: Collection[int] | None) -> list[FileScanTask]:
    """Return the files of the current snapshot; with `snapshots`, the data files and delete files that they added."""
    with explain_read_errors(table):
        tasks = table.scan().plan_files() if snapshots is None else _list_added_files(table, snapshots)
        return sorted(tasks, key=lambda task: _describe(table, task))


def _list_added_files(table: Table, snapshots: Collection[int]) -> Iterator[FileScanTask]:
    current = table.current_snapshot() if snapshots else None
    for manifest in current.manifests(table.io) if current else ():
        if manifest.added_snapshot_id in snapshots:  # a manifest of an earlier snapshot has no later file
            for entry in manifest.fetch_manifest_entry(table.io):
                if entry.snapshot_id in snapshots:
                    yield FileScanTask(entry.data_file)


def _list_deletes(table: Table) -> list[tuple[str, int]]:
    """Return path and number of rows of each delete file of the current snapshot, as its manifests have them."""
    current = table.current_snapshot()
    with explain_read_errors(table):
        return sorted(
            _describe(table, FileScanTask(entry.data_file))[:2]
            for manifest in (current.manifests(table.io) if current else ())
            if manifest.content is ManifestContent.DELETES
            for entry in manifest.fetch_manifest_entry(table.io)
        )


def _describe(table: Table, task: FileScanTask) -> tuple[str, int, int]:
    path = task.file.file_path.removeprefix(table.metadata.location.rstrip("/"))
    # A copied delete file has other addresses inside, so its size differs.
    size = task.file.file_size_in_bytes if task.file.content is DataFileContent.DATA else 0
    return path, task.file.record_count, size


def _format(table: Table, task: FileScanTask | None) -> str:
    return "no file" if task is None else "{} with {} rows and {} bytes".format(*_describe(table, task))


def _read_rows(table: Table, files: list[FileScanTask]) -> int:
    """Read all rows of data files, also deleted rows, and their delete files. Return the number of columns.

    Raises:
        MigrationError: A file has another number of rows than the manifest says, or cannot be read.
    """
    columns: set[str] = set()
    for task in files:
        rows = 0
        for batch in _read(table, FileScanTask(task.file)):
            rows += batch.num_rows
            columns.update(batch.schema.names)
        if rows != task.file.record_count:
            raise MigrationError(f"{_format(table, task)}: found {rows} rows")
    with explain_read_errors(table):
        # One delete file at a time: the positions of all of them may exceed the memory.
        for delete_file in {file.file_path: file for task in files for file in task.delete_files}.values():
            _read_all_delete_files(table.io, [FileScanTask(files[0].file, {delete_file})])
    return len(columns)


def _compare_rows(source: Table, target: Table, files: list[tuple[FileScanTask, FileScanTask]]) -> int:
    sums: tuple[dict[str, ColumnSum], dict[str, ColumnSum]] = ({}, {})
    counts = [0, 0]
    for source_file, target_file in files:
        samples: list[pa.Table] = []
        for side, (table, task) in enumerate(((source, source_file), (target, target_file))):
            sample: list[pa.RecordBatch] = []
            sampled_rows = 0
            for batch in _read(table, task):
                counts[side] += batch.num_rows
                if sampled_rows < SAMPLED_ROWS:
                    sample.append(batch.slice(0, SAMPLED_ROWS - sampled_rows))
                    sampled_rows += sample[-1].num_rows
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    sums[side][name] = sums[side].get(name, ColumnSum()).add(column)
            samples.append(pa.Table.from_batches(sample) if sample else pa.table({}))
        if not has_equal_rows(*samples):
            raise MigrationError(f"rows of {_format(source, source_file)} differ from the rows in the target")
    if counts[0] != counts[1]:
        raise MigrationError(f"rows: expected {counts[0]}, found {counts[1]}")
    different_columns = [name for name, column_sum in sums[0].items() if sums[1].get(name) != column_sum]
    if different_columns or len(sums[0]) != len(sums[1]):
        raise MigrationError(f"the sums of columns differ: {', '.join(different_columns)}")
    return len(sums[0])


def has_equal_rows(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables are equal. Unlike in Arrow, NaN equals NaN, also within lists, maps and structs."""
    return one.schema.equals(other.schema) and all(
        a.equals(b) or (_has_floats(a.type) and repr(a.to_pylist()) == repr(b.to_pylist()))
        for a, b in zip(one.columns, other.columns, strict=True)
    )


def _has_floats(kind: pa.DataType) -> bool:
    return is_floating(kind) or any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))


def _read(table: Table, task: FileScanTask) -> Iterator[pa.RecordBatch]:
    with explain_read_errors(table):
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        yield from scan.to_record_batches([task])


def _to_text(column: pa.Array) -> pa.Array:
    try:
        return pc.cast(column, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Nested values, and bytes that are no text.
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.large_string())
