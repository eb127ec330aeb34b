"""Tables that Lakekeeper would refuse are found from their metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lakewright_spark.migration.ledger import Method
from lakewright_spark.migration.registration_rules import find_registration_obstacles
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

ROWS = pa.table({"n": pa.array([1], pa.int64())})
Json = dict[str, Any]


@pytest.fixture
def table(local_catalog: SqlCatalog) -> Table:
    """Return a table with two snapshots."""
    table = local_catalog.create_table(
        "sales.orders", ROWS.schema, properties={"write.metadata.metrics.column.n": "full"}
    )
    table.append(ROWS)
    table.append(ROWS)
    return table


def list_obstacles(table: Table, change: Callable[[Json], Any], method: Method = Method.REGISTER) -> list[str]:
    document = table.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["location"] = "s3://b/sales/orders"
    change(document)
    table.metadata = TableMetadataUtil.parse_obj(document)
    return find_registration_obstacles(table, method)


def add_partition_fields(*sources: int) -> Callable[[Json], Any]:
    fields = [
        {"source-id": source, "field-id": number, "name": f"gone_{number}", "transform": "void"}
        for number, source in enumerate(sources, 1000)
    ]
    return lambda document: document["partition-specs"][0].update(fields=fields)


def test_valid_table_has_no_obstacle(table: Table) -> None:
    assert list_obstacles(table, lambda _: None) == []
    assert list_obstacles(table, add_partition_fields(1)) == []


@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        (lambda document: document.update(location="s3://b/sales//orders"), "the location 's3://b/sales//orders'"),
        (lambda document: document.update(location="s3://b/a/../orders"), "migrate it with --copy"),
        (
            lambda document: document["properties"].update({"write.data.path": "s3://b/x"}),
            "properties that the server does not support, write.data.path: remove them",
        ),
        (
            lambda document: document.update(
                {"partition-statistics": [{"snapshot-id": 7, "statistics-path": "s3://b/x", "file-size-in-bytes": 1}]}
            ),
            "statistics of snapshots that it lacks, 7",
        ),
        (lambda document: document["snapshots"][0].update({"schema-id": 9}), "snapshots whose schemas it lacks"),
        (
            lambda document: document["refs"].update(old={"snapshot-id": 7, "type": "tag"}),
            "branches or tags at snapshots that it lacks, old",
        ),
        (lambda document: document.update({"last-sequence-number": 1}), "above its last sequence number 1"),
        (lambda document: document["snapshot-log"][1].update({"timestamp-ms": 1}), "a log of snapshots"),
        (add_partition_fields(9), "a partition field whose column was dropped"),
        (add_partition_fields(1, 1), "two equal partition fields of a column"),
    ],
)
def test_refused_metadata(table: Table, change: Callable[[Json], Any], obstacle: str) -> None:
    (text,) = list_obstacles(table, change)
    assert obstacle in text


def test_copy_gets_another_location(table: Table) -> None:
    move = "s3://b/sales//orders"
    assert list_obstacles(table, lambda document: document.update(location=move), Method.COPY) == []


def test_copy_gets_no_earlier_metadata_files(table: Table) -> None:
    def change(document: Json) -> None:
        document["metadata-log"][-1]["timestamp-ms"] = 1

    (obstacle,) = list_obstacles(table, change)
    assert obstacle == "a log of metadata files that is not in the order of time: migrate it with --copy"
    assert list_obstacles(table, change, Method.COPY) == []


@pytest.mark.parametrize("method", [Method.REGISTER, Method.COPY])
@pytest.mark.parametrize(
    ("name", "ref", "is_dropped"),
    [
        ("main", {"type": "branch"}, False),
        ("main", {"type": "branch", "min-snapshots-to-keep": 3}, True),
        ("close", {"type": "tag"}, True),
    ],
)
def test_refs_of_version_1(table: Table, method: Method, name: str, ref: Json, *, is_dropped: bool) -> None:
    """A registered table of this version has `main` alone, so that the comparison after the fence would fail."""

    def change(document: Json) -> None:
        document |= {"format-version": 1, "schema": document["schemas"][0], "partition-spec": []}
        document["refs"][name] = {"snapshot-id": document["current-snapshot-id"]} | ref

    obstacle = (
        f"branches, tags or retentions that the server drops under format version 1, {name}: upgrade it to format "
        "version 2"
    )
    assert list_obstacles(table, change, method) == ([obstacle] if is_dropped else [])


@pytest.mark.parametrize(("transform", "is_refused"), [("identity", False), ("void", True), ("bucket[4]", True)])
def test_partition_field_with_the_name_of_a_column(table: Table, transform: str, *, is_refused: bool) -> None:
    """Spark keeps the name of an identity field that it removes under format version 1."""
    field = {"source-id": 1, "field-id": 1000, "name": "n", "transform": transform}
    obstacles = list_obstacles(table, lambda document: document["partition-specs"][0].update(fields=[field]))
    assert [text.partition(", so that")[0] for text in obstacles] == (
        ["partition fields that have the name of a column, n"] if is_refused else []
    )
