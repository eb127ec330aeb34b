"""Results as Spark's DataFrames: written in one commit, read as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import ResultNamespaces, ResultUri
from lakewright_spark.results.frame_columns import readable_frame
from lakewright_spark.results.tables import PROPERTIES, ResultTables


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
