"""Writing an execution's tables with Spark: whole frames, or rows in batches as an operator yields them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakewright_spark.catalog import COMMIT_RETRIES, CatalogConfig
from lakewright_spark.results.uris import ResultNamespaces, ResultUri

BATCH_ROWS = 4096
"""Texera's `storage.iceberg.table.commit.batch-size`: rows a commit."""


@dataclass(frozen=True)
class ResultWriter:
    """Writes to one warehouse, which is a Spark catalog of the same name."""

    spark: SparkSession
    config: CatalogConfig
    warehouse: str
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)

    def write(self, uri: ResultUri, frame: DataFrame) -> None:
        """Make the table anew with these rows, in one commit; a table that was there is dropped with its files."""
        self._drop(uri)
        creation = frame.writeTo(self.identifier(uri)).using("iceberg")
        for key, value in COMMIT_RETRIES.items():
            creation = creation.tableProperty(key, value)
        creation.create()

    def write_rows(
        self, uri: ResultUri, schema: StructType, rows: Iterable[Sequence[Any]], batch: int = BATCH_ROWS
    ) -> int:
        """Make the table anew and append the rows, one commit a batch for readers to follow; returns how many."""
        self.write(uri, self.spark.createDataFrame([], schema))
        written = 0
        for part in _batches(rows, batch):
            # One partition: a batch is one file, whose order is the rows' order.
            self.spark.createDataFrame(part, schema).coalesce(1).writeTo(self.identifier(uri)).append()
            written += len(part)
        return written

    def identifier(self, uri: ResultUri) -> str:
        """The table's full name, quoted for Spark SQL."""
        if uri.warehouse not in {None, self.warehouse}:
            raise ValueError(f"{uri} is in warehouse {uri.warehouse!r}, and this writer writes to {self.warehouse!r}")
        return f"`{self.warehouse}`.`{self.namespaces.of(uri)}`.`{uri.table}`"

    def _drop(self, uri: ResultUri) -> None:
        # Not Spark's DROP TABLE: it leaves `purgeRequested` out, which Lakekeeper takes for yes and other catalogs for
        # no, and with PURGE it deletes files itself, those that Lakekeeper may have deleted already.
        table = (self.namespaces.of(uri), uri.table)
        if self._catalog.table_exists(table):
            self.spark.sql(f"REFRESH TABLE {self.identifier(uri)}")  # else Spark's cache keeps the table for a while
            self._catalog.purge_table(table)

    @cached_property
    def _catalog(self) -> Catalog:
        return load_catalog(self.warehouse, **self.config.pyiceberg(self.warehouse))


def _batches(rows: Iterable[Sequence[Any]], size: int) -> Iterator[list[Sequence[Any]]]:
    source = iter(rows)
    while part := list(islice(source, size)):
        yield part
