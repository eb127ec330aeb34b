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
