"""Column types that Texera reads, conversions to them, and refused types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lakewright_spark.errors import ColumnRefusedError
from lakewright_spark.results import writer
from lakewright_spark.results.columns import convert, readable_schema

NTZ = pa.timestamp("us")


@pytest.mark.parametrize(
    ("arrow_type", "readable"),
    [
        (pa.string(), pa.string()),
        (pa.large_string(), pa.string()),
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.int32(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.int64(), pa.int64()),
        (pa.float16(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.bool_(), pa.bool_()),
        (NTZ, NTZ),
        (pa.timestamp("ms"), NTZ),
        (pa.timestamp("ns", "UTC"), NTZ),
        (pa.date32(), NTZ),
        (pa.date64(), NTZ),
        (pa.binary(), pa.binary()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(4), pa.binary()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
    ],
)
def test_types_are_converted_for_texera(arrow_type: pa.DataType, readable: pa.DataType) -> None:
    assert readable_schema(pa.schema([pa.field("c", arrow_type, nullable=False)])) == pa.schema([("c", readable)])


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal128(10, 2),
        pa.uint64(),
        pa.time64("us"),
        pa.duration("s"),
        pa.null(),
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.map_(pa.string(), pa.int64()),
    ],
)
def test_types_without_lossless_conversion_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(ColumnRefusedError, match=r"column 'c': expected a type that Texera reads .*found .*cast it"):
        readable_schema(pa.schema([("c", kind)]))


def test_names_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(ColumnRefusedError, match="columns id: expected names"):
        readable_schema(pa.schema([("id", pa.int64()), ("ID", pa.int64())]))


def test_value_that_would_lose_digits_is_refused() -> None:
    batch = pa.record_batch([pa.array([1], pa.timestamp("ns"))], names=["c"])
    with pytest.raises(ColumnRefusedError, match=r"'c'.*would lose data"):
        convert(batch, readable_schema(batch.schema))


def test_surplus_columns_are_refused() -> None:
    """Regression: they were dropped silently."""
    batch = pa.record_batch({"a": pa.array([1]), "b": pa.array(["lost"])})
    with pytest.raises(ColumnRefusedError, match="columns b: expected no columns but a: add them"):
        convert(batch, readable_schema(pa.schema([("a", pa.int64())])))


def test_surplus_names_in_rows_are_refused() -> None:
    rows = [{"a": 1}, {"a": 2, "b": "lost"}]
    with pytest.raises(ColumnRefusedError, match="columns b: expected no columns but a: add them"):
        writer._build_batch(rows, pa.schema([("a", pa.int64())]))
