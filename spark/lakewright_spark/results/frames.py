"""Results as Spark's DataFrames: written in one commit, read as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultNamespaces, ResultUri
from lakewright_spark.results.columns import check_names, refused
from lakewright_spark.results.tables import PROPERTIES, ResultTables

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
            ColumnRefusedError: A column has a type without a lossless counterpart among those.
            BadAddressError: Texera cannot read the address.
        """
        readable = readable_frame(frame)
        self._tables.prepare(uri)
        replacement = readable.writeTo(self.identifier(uri)).using("iceberg")
        for key, value in PROPERTIES.items():
            replacement = replacement.tableProperty(key, value)
        replacement.createOrReplace()

    def read(self, uri: ResultUri) -> DataFrame:
        """Every row; Spark says in which order."""
        return self.spark.table(self.identifier(uri))

    def identifier(self, uri: ResultUri) -> str:
        """The table's full name, quoted for Spark SQL. WarehouseRefusedError if the address is in another warehouse."""
        parts = (self.warehouse, *self._tables.identifier(uri))
        return ".".join(f"`{part.replace('`', '``')}`" for part in parts)

    @property
    def _tables(self) -> ResultTables:
        return ResultTables(self.config, self.warehouse, self.namespaces, self.catalogs)
