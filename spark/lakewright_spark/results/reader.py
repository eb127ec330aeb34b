"""Reading an execution's tables through PyIceberg, without a JVM: how many rows, a page of them, or all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import RowsDeletedError
from lakewright_spark.results.uris import ResultNamespaces, ResultUri


@dataclass(frozen=True)
class ResultReader:
    """Reads from one warehouse. Rows have the order in which they were committed."""

    config: CatalogConfig
    warehouse: str
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)

    def count(self, uri: ResultUri) -> int:
        """How many rows there are, from the manifests alone."""
        return sum(task.file.record_count for task in _in_order(self.table(uri)))

    def range(self, uri: ResultUri, offset: int, limit: int) -> pa.Table:
        """Up to `limit` rows from row `offset` (0 is the first) on; only files that hold some of them are read."""
        table = self.table(uri)
        wanted: list[FileScanTask] = []
        start = skipped = 0
        for task in _in_order(table):
            end = start + task.file.record_count
            if end <= offset:
                skipped = end
            elif start < offset + limit:
                wanted.append(task)
            start = end
        return _read(table, wanted).slice(offset - skipped, limit)

    def whole(self, uri: ResultUri) -> pa.Table:
        """Every row."""
        table = self.table(uri)
        return _read(table, list(_in_order(table)))

    def table(self, uri: ResultUri) -> Table:
        """The table as it is now; PyIceberg's NoSuchTableError if there is none."""
        if uri.warehouse not in {None, self.warehouse}:
            raise ValueError(f"{uri} is in warehouse {uri.warehouse!r}, and this reader reads {self.warehouse!r}")
        return self._catalog.load_table((self.namespaces.of(uri), uri.table))

    @cached_property
    def _catalog(self) -> Catalog:
        return load_catalog(self.warehouse, **self.config.pyiceberg(self.warehouse))


def _in_order(table: Table) -> Iterator[FileScanTask]:
    entries = (
        table.inspect.entries().select(["data_file", "sequence_number"]).to_pylist() if table.current_snapshot() else []
    )
    sequence = {entry["data_file"]["file_path"]: entry["sequence_number"] for entry in entries}
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise RowsDeletedError(f"{'.'.join(table.name())} has delete files; results are expected to be appended only")
    return iter(sorted(tasks, key=lambda task: (sequence[task.file.file_path], task.file.file_path)))


def _read(table: Table, tasks: list[FileScanTask]) -> pa.Table:
    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks)
