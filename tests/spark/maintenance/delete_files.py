"""Equality deletes, which Spark does not write, through Iceberg's Java library."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from lakewright_spark.maintenance.table.iceberg import IcebergTable

from tests.spark.maintenance.conftest import Maintained


def delete_by_equality(table: Maintained, value: int, *partition_values: object, column: str = "n") -> None:
    """Commit an equality delete, as streaming engines write them."""
    opened = IcebergTable.open(table.spark, table.table)
    session, java = cast(Any, table.spark), opened.java
    jvm = session._jvm.org.apache.iceberg
    field = session.sparkContext._gateway.new_array(session._jvm.int, 1)
    field[0] = java.schema().findField(column).fieldId()
    keys = java.schema().select([column])
    builder = jvm.data.GenericFileWriterFactory.Builder(java).deleteFileFormat(jvm.FileFormat.PARQUET)
    factory = builder.equalityFieldIds(field).equalityDeleteRowSchema(keys).build()
    partition = jvm.PartitionData(java.spec().partitionType())
    for position, partition_value in enumerate(partition_values):
        partition.set(position, partition_value)
    file = java.io().newOutputFile(f"{opened.location}/data/equality-{uuid4().hex}.parquet")
    output = jvm.encryption.EncryptedFiles.plainAsEncryptedOutput(file)
    writer = factory.newEqualityDeleteWriter(output, java.spec(), partition)
    row = jvm.data.GenericRecord.create(keys)
    row.setField(column, value)
    writer.write(row)
    writer.close()
    java.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
