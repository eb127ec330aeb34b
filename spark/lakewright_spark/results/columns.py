"""Columns that Texera can read. Other types are converted if no value changes, and refused otherwise.

Texera maps Iceberg's string, int, long, double, boolean, timestamp without zone and binary to its attribute types, and
fails on a result with any other type of column. It looks columns up by their names in lower case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.types as kinds

from lakewright_spark.errors import ColumnRefusedError

TIMESTAMP = pa.timestamp("us")
"""A timestamp without a zone. The time is UTC, as in Texera's containers."""

READABLE_TYPES = "string, int, long, double, boolean, timestamp and binary"


def readable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with types that Texera reads, all columns optional.

    Raises:
        ColumnRefusedError: A column has a type without a lossless counterpart, or two names differ in case alone.
    """
    check_names(schema.names)
    return pa.schema([pa.field(field.name, _convert_type(field.name, field.type)) for field in schema])


def convert(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the columns of `target`, which `readable_schema` made.

    Raises:
        ColumnRefusedError: A value does not fit, such as a time of parts of a microsecond, or a column is missing, or
            `target` does not have it.
    """
    if batch.schema.equals(target):
        return batch
    check_surplus(batch.schema.names, target.names)
    arrays: list[pa.Array] = []
    for field in target:
        try:
            arrays.append(batch.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ColumnRefusedError(f"column {field.name!r}: expected values of type {field.type}: {reason}") from None
    return pa.record_batch(arrays, schema=target)


def check_names(names: Iterable[str]) -> None:
    """Raise ColumnRefusedError if two names differ in case alone."""
    if double := sorted(name for name, count in Counter(name.lower() for name in names).items() if count > 1):
        raise ColumnRefusedError(
            f"columns {', '.join(double)}: expected names that differ in more than upper and lower case, which Texera "
            "takes for the same name: rename all but one of each"
        )


def check_surplus(names: Iterable[str], expected: Sequence[str]) -> None:
    """Raise ColumnRefusedError if rows have columns that the result does not have."""
    if surplus := sorted(set(names) - set(expected)):
        raise ColumnRefusedError(
            f"columns {', '.join(surplus)}: expected no columns but {', '.join(expected)}: add them to the schema of "
            "the result, or leave them out of the rows"
        )


def build_type_error(name: str, kind: object) -> ColumnRefusedError:
    """Return the error for a type that Texera cannot read."""
    return ColumnRefusedError(
        f"column {name!r}: expected a type that Texera reads ({READABLE_TYPES}), found {kind}: cast it to one of them, "
        "such as a decimal to double or string, or a nested value to JSON text"
    )


def _convert_type(name: str, kind: pa.DataType) -> pa.DataType:
    if kinds.is_dictionary(kind):
        return _convert_type(name, kind.value_type)
    for is_kind, readable in _COUNTERPARTS:
        if is_kind(kind):
            return readable
    raise build_type_error(name, kind)


def _is_wide(kind: pa.DataType) -> bool:
    return kind in {pa.int64(), pa.uint32()}


def _is_narrow(kind: pa.DataType) -> bool:
    return kinds.is_integer(kind) and kind.bit_width <= _NARROW_BITS and kind != pa.uint32()


_NARROW_BITS = 32
_COUNTERPARTS: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (kinds.is_string, pa.string()),
    (kinds.is_large_string, pa.string()),
    (kinds.is_string_view, pa.string()),
    (kinds.is_boolean, pa.bool_()),
    (_is_narrow, pa.int32()),
    (_is_wide, pa.int64()),
    (kinds.is_floating, pa.float64()),
    (kinds.is_timestamp, TIMESTAMP),
    (kinds.is_date, TIMESTAMP),
    (kinds.is_binary, pa.binary()),
    (kinds.is_large_binary, pa.binary()),
    (kinds.is_fixed_size_binary, pa.binary()),
)
