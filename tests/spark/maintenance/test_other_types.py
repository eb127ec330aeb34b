"""Types of format version 3 that Spark does not write: the values survive each job, which may be skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.model import JOBS
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from tests.spark.maintenance.conftest import Maintained
from tests.spark.maintenance.generic_rows import append_row, create_with_type, read_rows

pytestmark = pytest.mark.spark
LONG = pytest.mark.long
POINT = "0101000000000000000000f03f0000000000000040"
"""Well-known binary of POINT (1 2)."""


@pytest.fixture
def table(spark: SparkSession, sandbox: Sandbox) -> Iterator[Maintained]:
    """Return a table that the test creates. Spark does not drop tables that it cannot read."""
    table = Maintained(spark, sandbox, TableIdentifier("results", ("maintained",), "other_types"))
    table.set_policies(
        history={"versions": 2},
        compaction={"min_input_files": 2},
        orphan_files={"older_than_days": 1},
        staged_files={"older_than_days": 1},
    )
    yield table
    java = cast(Any, spark)._jvm.org.apache.iceberg
    catalog = java.spark.Spark3Util.loadIcebergCatalog(cast(Any, spark)._jsparkSession, "results")
    catalog.dropTable(java.catalog.TableIdentifier.parse("maintained.other_types"))


def convert_value(spark: SparkSession, kind: str) -> Any:
    """Return a value of a type, as Iceberg's Java library has it."""
    jvm = cast(Any, spark)._jvm
    if kind.startswith("timestamptz"):
        return jvm.java.time.OffsetDateTime.parse("2026-01-01T00:00:00.000000001Z")
    if kind.startswith("timestamp"):
        return jvm.java.time.LocalDateTime.parse("2026-01-01T00:00:00.000000001")
    return jvm.java.nio.ByteBuffer.wrap(bytes.fromhex(POINT))


@pytest.mark.parametrize(
    "kind",
    ["timestamp_ns", *(pytest.param(kind, marks=LONG) for kind in ("timestamptz_ns", "geometry", "geography"))],
)
def test_values_survive_each_job(table: Maintained, kind: str) -> None:
    """Spark reads no times in nanoseconds, so no job writes or reads their data files."""
    create_with_type(table.spark, table.table, kind)
    for number in range(3):
        append_row(table, number, convert_value(table.spark, kind))
    rows = read_rows(table)
    opened = IcebergTable.open(table.spark, table.table)
    opened.write(f"{opened.location}/data/lost.parquet", "lost")
    results = {job: table.job(job) for job in JOBS}
    assert [result.failure for result in results.values()] == [None] * len(JOBS)
    assert read_rows(table) == rows
    assert (len(rows), results["orphan-files"].candidates) == (3, 1)
    if "_ns" in kind:
        reason = f"Spark cannot read columns of type {kind}"
        assert (results["compaction"].state, results["compaction"].reason) == ("SKIPPED", reason)
    else:
        assert results["compaction"].rewritten == 3
