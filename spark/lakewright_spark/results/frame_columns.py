"""Columns of a DataFrame as Texera can read them, by the same rules as `columns` has for Arrow."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lakewright_spark.results.columns import check_names, refused

_SAME = (t.IntegerType, t.LongType, t.DoubleType, t.BooleanType, t.TimestampNTZType, t.BinaryType)
_CASTS: dict[type[t.DataType], t.DataType] = {
    t.StringType: t.StringType(),
    t.CharType: t.StringType(),
    t.VarcharType: t.StringType(),
    t.ByteType: t.IntegerType(),
    t.ShortType: t.IntegerType(),
    t.FloatType: t.DoubleType(),
    t.DateType: t.TimestampNTZType(),
}
_IN_UTC = "timestampadd(MICROSECOND, unix_micros({}), TIMESTAMP_NTZ'1970-01-01 00:00:00')"
"""Exact in every time zone of a session, where a cast takes the session's own."""


def readable_frame(frame: DataFrame) -> DataFrame:
    """Return the frame with types that Texera reads.

    Raises:
        ColumnRefusedError: A column has a type without a lossless counterpart, or two names differ in case alone.
    """
    schema = frame.schema
    check_names(schema.names)
    if all(isinstance(field.dataType, _SAME) or field.dataType == t.StringType() for field in schema):
        return frame
    return frame.select([_readable(field).alias(field.name) for field in schema])


def _readable(field: t.StructField) -> Column:
    name, kind = f"`{field.name.replace('`', '``')}`", field.dataType
    if isinstance(kind, _SAME):
        return f.col(name)
    if isinstance(kind, t.TimestampType):
        return f.expr(_IN_UTC.format(name))
    if target := _CASTS.get(type(kind)):
        return f.col(name).cast(target)
    raise refused(field.name, kind.simpleString())
