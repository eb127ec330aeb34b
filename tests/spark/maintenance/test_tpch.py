"""TPC-H after updates and deletes: maintenance keeps its contents, and predicts which files compaction rewrites."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.policies.model import CompactionPolicy
from pydantic import ByteSize
from pyspark.sql import SparkSession

from benchmarks.tpch import CHANGED, Tpch
from benchmarks.tpch_care import Care, care

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="minutes: test-all"),
]

SCALE, NIGHTS, ROUNDS = 0.01, 2, 2
SMALLEST_FILES = CompactionPolicy(target_file_size=ByteSize(2**20))
FACTOR = 2.0


def is_close(predicted: float, measured: float) -> bool:
    return measured / FACTOR <= predicted <= measured * FACTOR


def test_contents_and_predictions_of_tpch(spark: SparkSession, tenant: CatalogConfig, tmp_path: Path) -> None:
    """DuckDB does the same changes. The contents are compared after the load, after changes, and after each job.

    Deleted rows are deletion vectors in `orders` and files of position deletes in `lineitem`. The predicted seconds are
    not compared: they depend on the load of the machine.
    """
    config = tenant.select_warehouses(["results"])
    done = care(Tpch(spark, "results.tpch", tmp_path, SCALE), config, SMALLEST_FILES, NIGHTS, ROUNDS)
    compactions = [one for one in done if one.run.job == "compaction"]
    assert sorted((one.night, one.run.table.name) for one in compactions) == [
        (night, table) for night in range(1, NIGHTS + 1) for table in sorted(CHANGED)
    ]
    for one in compactions:
        measured = one.run.metrics
        assert measured["removed_delete_files"] > 0
        assert is_close(one.predicted["files"], one.files_saved), describe(one)
        assert is_close(one.predicted["bytes"], measured["bytes"]), describe(one)


def describe(one: Care) -> str:
    return f"night {one.night}, {one.run.table.name}: {one.run.metrics}"
