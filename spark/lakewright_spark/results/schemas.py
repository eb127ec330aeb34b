"""The columns of the tables that Texera reads besides an operator's own results (all optional, none partitioned)."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampNTZType

RUNTIME_STATISTICS = StructType(
    [
        StructField("operatorId", StringType()),
        StructField("time", TimestampNTZType()),  # UTC
        StructField("inputTupleCnt", LongType()),
        StructField("inputTupleSize", LongType()),  # bytes
        StructField("outputTupleCnt", LongType()),
        StructField("outputTupleSize", LongType()),  # bytes
        StructField("dataProcessingTime", LongType()),  # nanoseconds
        StructField("controlProcessingTime", LongType()),  # nanoseconds
        StructField("idleTime", LongType()),  # nanoseconds
        StructField("numWorkers", IntegerType()),
        StructField("status", IntegerType()),
    ]
)

CONSOLE_MESSAGES = StructType([StructField("message", StringType())])


class Status(IntEnum):
    """`status` of the runtime statistics, numbered as Texera's web service stores execution states."""

    READY = 0
    RUNNING = 1
    PAUSED = 2
    COMPLETED = 3
    ABORTED = 4
