"""Columns of the tables that Texera reads: its attribute types, and the schemas besides an operator's own results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import pyarrow as pa

from lakewright_spark.errors import BadAddressError

LARGE_BINARY_SUFFIX = "__texera_large_binary_ptr"
"""The suffix that Texera appends to the name of a column with addresses of large objects."""

_TYPES: Mapping[str, pa.DataType] = {
    "STRING": pa.string(),
    "INTEGER": pa.int32(),
    "LONG": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us"),  # without a zone
    "BINARY": pa.binary(),
    "LARGE_BINARY": pa.string(),
}

RUNTIME_STATISTICS = pa.schema(
    [
        ("operatorId", pa.string()),
        ("time", pa.timestamp("us")),  # UTC
        ("inputTupleCnt", pa.int64()),
        ("inputTupleSize", pa.int64()),  # bytes
        ("outputTupleCnt", pa.int64()),
        ("outputTupleSize", pa.int64()),  # bytes
        ("dataProcessingTime", pa.int64()),  # nanoseconds
        ("controlProcessingTime", pa.int64()),  # nanoseconds
        ("idleTime", pa.int64()),  # nanoseconds
        ("numWorkers", pa.int32()),
        ("status", pa.int32()),
    ]
)

CONSOLE_MESSAGES = pa.schema([("message", pa.string())])

LOOP_STATE = pa.schema([("content", pa.string()), ("loop_counter", pa.int64()), ("loop_start_id", pa.string())])
"""The columns of every state table since Texera's pull request 5900: the state as a JSON object, and its loop.

Outside a loop, `loop_counter` is 0 and `loop_start_id` is empty.
"""


class Status(IntEnum):
    """`status` of the runtime statistics, numbered as Texera's web service stores execution states."""

    READY = 0
    RUNNING = 1
    PAUSED = 2
    COMPLETED = 3
    FAILED = 4
    KILLED = 5


def result_schema(attributes: Iterable[tuple[str, str]]) -> pa.Schema:
    """Return the columns of a result from Texera's (name, type) pairs.

    Raises BadAddressError for a type that no table can store.
    """
    fields: list[tuple[str, pa.DataType]] = []
    for name, kind in attributes:
        if kind not in _TYPES:
            raise BadAddressError(f"column {name!r}: expected a type of {', '.join(_TYPES)}, found {kind!r}")
        fields.append((name + LARGE_BINARY_SUFFIX if kind == "LARGE_BINARY" else name, _TYPES[kind]))
    return pa.schema(fields)
