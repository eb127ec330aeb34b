"""Results as Spark's DataFrames: written in one commit or as a stream, read as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import NoSuchResultError
from lakewright_spark.migration.fence import keep_fence
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultNamespaces, ResultUri
from lakewright_spark.results.columns import build_type_error, check_names
from lakewright_spark.results.tables import PROPERTIES, ResultTables

STREAM_SECONDS = 180.0
"""Seconds between two commits of a stream: each commit costs as much as all snapshots before it. 480 commits a day.

Spark cannot change the trigger of a running query, so a stream does not slow down with age, as `CommitInterval` does.
"""

_UNCHANGED_TYPES = (t.IntegerType, t.LongType, t.DoubleType, t.BooleanType, t.TimestampNTZType, t.BinaryType)
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
"""Exact in every time zone of a session. A cast would use the session's time zone."""


def readable_frame(frame: DataFrame) -> DataFrame:
    """Return the frame with types that Texera reads.

    Raises:
        ColumnRefusedError: A column has a type without a lossless counterpart, or two names differ in case alone.
    """
    schema = frame.schema
    check_names(schema.names)
    if all(isinstance(field.dataType, _UNCHANGED_TYPES) or field.dataType == t.StringType() for field in schema):
        return frame
    return frame.select([_cast_column(field).alias(field.name) for field in schema])


def _cast_column(field: t.StructField) -> Column:
    name, kind = f"`{field.name.replace('`', '``')}`", field.dataType
    if isinstance(kind, _UNCHANGED_TYPES):
        return f.col(name)
    if isinstance(kind, t.TimestampType):
        return f.expr(_IN_UTC.format(name))
    if target := _CASTS.get(type(kind)):
        return f.col(name).cast(target)
    raise build_type_error(field.name, kind.simpleString())


@dataclass(frozen=True)
class ResultFrames:
    """Results of one warehouse, which is a Spark catalog of the same name; by Spark Connect as well."""

    spark: SparkSession
    config: CatalogConfig
    warehouse: str
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)

    def write(self, uri: ResultUri, frame: DataFrame) -> None:
        """Replace the result by these rows, in one commit.

        Readers see the old rows until the commit, and a frame may read the address that it is written to. The table
        keeps its UUID; snapshot expiration, or the drop of the table, frees the old files. Columns get the types that
        Texera reads.

        Raises:
            ColumnRefusedError: A column has a type without a lossless counterpart.
            BadAddressError: Texera cannot read the address.
        """
        readable = readable_frame(frame)
        self._tables.prepare(uri)
        properties = keep_fence(PROPERTIES, self._read_properties(uri))
        self._describe_table(uri, readable, properties).createOrReplace()

    def write_stream(
        self, uri: ResultUri, frame: DataFrame, checkpoint: str, *, every_seconds: float | None = STREAM_SECONDS
    ) -> StreamingQuery:
        """Start a query that adds the rows of a streaming frame to the result, each exactly once.

        Iceberg's sink writes the query and the number of the batch into each snapshot, and skips a batch that an
        earlier process has committed. A query continues after a crash if it is started again with the same checkpoint.
        The result keeps the rows that it has.

        Args:
            uri: The address of the result, which is created if it does not exist.
            frame: A streaming frame. Columns get the types that Texera reads.
            checkpoint: A folder for the progress of this query, which the driver of the next process reaches too, such
                as `file:///state/clean` on a persistent volume.
            every_seconds: Seconds between two commits; None commits all rows that exist now, and ends.

        Raises:
            ColumnRefusedError: A column has a type without a lossless counterpart.
            BadAddressError: Texera cannot read the address.
        """
        readable = readable_frame(frame)
        self._tables.prepare(uri)
        if not self._tables.exists(uri):
            empty = self.spark.createDataFrame([], readable.schema)
            self._describe_table(uri, empty, PROPERTIES).create()
        writer = readable.writeStream.format("iceberg").outputMode("append").option("checkpointLocation", checkpoint)
        if every_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(every_seconds * 1000)} milliseconds")
        return writer.toTable(self.identifier(uri))

    def read(self, uri: ResultUri) -> DataFrame:
        """Return every row, in an order that Spark chooses."""
        return self.spark.table(self.identifier(uri))

    def identifier(self, uri: ResultUri) -> str:
        """Return the table's full name, quoted for Spark SQL.

        Raises WarehouseRefusedError if the address is in another warehouse.
        """
        parts = (self.warehouse, *self._tables.identifier(uri))
        return ".".join(f"`{part.replace('`', '``')}`" for part in parts)

    def _read_properties(self, uri: ResultUri) -> Mapping[str, str]:
        """Return the properties of the result's table; no properties if it does not exist."""
        try:
            return self._tables.load(uri).properties
        except NoSuchResultError:
            return {}

    def _describe_table(self, uri: ResultUri, frame: DataFrame, properties: Mapping[str, str]) -> DataFrameWriterV2:
        """Return the writer of a table with the frame's columns and these properties."""
        writer = frame.writeTo(self.identifier(uri)).using("iceberg")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        return writer

    @property
    def _tables(self) -> ResultTables:
        return ResultTables(self.config, self.warehouse, self.namespaces, self.catalogs)
