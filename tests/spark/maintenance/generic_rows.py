"""Tables with types that Spark does not write: created, written and read through Iceberg's Java library."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from tests.spark.maintenance.conftest import Maintained


def create_with_type(spark: SparkSession, table: TableIdentifier, kind: str) -> None:
    """Create a table of format version 3 with the columns `n` (int) and `x`, of a type such as `geometry`."""
    jvm = cast(Any, spark)._jvm
    iceberg = jvm.org.apache.iceberg
    types = iceberg.types.Types
    fields = jvm.java.util.ArrayList()
    fields.add(types.NestedField.optional(1, "n", types.IntegerType.get()))
    fields.add(types.NestedField.optional(2, "x", types.fromTypeName(kind)))
    catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(cast(Any, spark)._jsparkSession, table.warehouse)
    levels = cast(Any, spark.sparkContext)._gateway.new_array(jvm.java.lang.String, len(table.namespace))
    for number, level in enumerate(table.namespace):
        levels[number] = level
    name = iceberg.catalog.TableIdentifier.of(iceberg.catalog.Namespace.of(levels), table.name)
    properties = jvm.java.util.HashMap()
    properties.put("format-version", "3")
    catalog.createTable(name, iceberg.Schema(fields), iceberg.PartitionSpec.unpartitioned(), properties)


def append_row(table: Maintained, number: int, value: Any) -> None:
    """Commit a data file with one row."""
    opened = IcebergTable.open(table.spark, table.table)
    iceberg, java = cast(Any, table.spark)._jvm.org.apache.iceberg, opened.java
    builder = iceberg.data.GenericFileWriterFactory.Builder(java).dataFileFormat(iceberg.FileFormat.PARQUET)
    file = java.io().newOutputFile(f"{opened.location}/data/{uuid4().hex}.parquet")
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(file)
    writer = builder.build().newDataWriter(output, java.spec(), None)
    row = iceberg.data.GenericRecord.create(java.schema())
    row.setField("n", number)
    row.setField("x", value)
    writer.write(row)
    writer.close()
    java.newAppend().appendFile(writer.toDataFile()).commit()


def read_rows(table: Maintained) -> list[tuple[int, Any]]:
    """Return the values of each row. Bytes are hexadecimal."""
    opened = IcebergTable.open(table.spark, table.table)
    to_text = opened.find_class("org.apache.iceberg.util.ByteBuffers").toByteArray
    records = opened.find_class("org.apache.iceberg.data.IcebergGenerics").read(opened.java).build()
    rows: list[tuple[int, Any]] = []
    for record in iterate(records):
        value = record.getField("x")
        is_binary = "ByteBuffer" in value.getClass().getName()
        rows.append((record.getField("n"), bytes(to_text(value)).hex() if is_binary else value.toString()))
    return sorted(rows)
