"""Details of tables of a real catalog on this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from lakewright_spark.pyiceberg_client.table_details import read_details
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyiceberg.types import LongType, NestedField, TimestampType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "at", TimestampType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "at_day"))


def append_rows(table: Table, times: int) -> None:
    for number in range(times):
        table.append(pa.table({"id": [number], "at": [datetime(2026, 11, 1)]}))  # noqa: DTZ001 - a column without zone


def test_facts_of_a_new_table(local_catalog: SqlCatalog) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    table = local_catalog.create_table("sales.rows", SCHEMA, partition_spec=BY_DAY, properties={"owner": "ada"})

    details = read_details(table)

    assert (details.uuid, details.location) == (str(table.metadata.table_uuid), table.location())
    assert (details.format_version, details.schema_id, details.columns) == (2, 0, 2)
    assert details.partition_fields == ("day(at)",)
    assert (details.versions, details.creator) == (1, "ada")
    assert details.created_at == details.updated_at
    assert before <= details.updated_at <= datetime.now(UTC)


def test_creation_is_known_while_the_log_has_it(local_catalog: SqlCatalog) -> None:
    created = local_catalog.create_table("sales.rows", SCHEMA)
    table = local_catalog.load_table("sales.rows")
    append_rows(table, 2)

    details = read_details(table)

    assert details.created_at == read_details(created).created_at
    assert details.created_at < details.updated_at
    assert (details.versions, details.creator) == (3, None)
    assert details.metadata_location == table.metadata_location != created.metadata_location


def test_creation_is_unknown_once_the_log_is_cut(local_catalog: SqlCatalog) -> None:
    properties = {"write.metadata.previous-versions-max": "1"}
    table = local_catalog.create_table("sales.rows", SCHEMA, properties=properties)
    append_rows(table, 3)

    details = read_details(table)

    assert details.created_at is None
    assert details.versions == 2
