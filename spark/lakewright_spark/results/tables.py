"""ResultTables: create, load, list and drop the result tables of a warehouse through PyIceberg."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table

from lakewright_spark.catalog import COMMIT_RETRIES, CatalogConfig
from lakewright_spark.errors import WarehouseRefusedError
from lakewright_spark.execution_registry.records import WrittenTable
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.result_uris import Execution, ResultKind, ResultNamespaces, ResultUri

PROPERTIES: Mapping[str, str] = {
    **COMMIT_RETRIES,
    # A commit a few seconds makes a manifest each; merged, a reader opens some tens of them instead of thousands.
    "commit.manifest-merge.enabled": "true",
    # A page is read by row groups; PyIceberg's default of 1,048,576 rows would make most files one of them.
    "write.parquet.row-group-limit": "65536",
}
"""Table properties of every result."""


@dataclass(frozen=True)
class ResultTables:
    """The results in one warehouse. Every method raises this package's errors."""

    config: CatalogConfig
    warehouse: str
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)

    def identifier(self, uri: ResultUri) -> tuple[str, str]:
        """Namespace and name of the table; WarehouseRefusedError if the address is in another warehouse."""
        if uri.warehouse not in {None, self.warehouse}:
            raise WarehouseRefusedError(f"{uri} is in warehouse {uri.warehouse!r}, and this is {self.warehouse!r}")
        return self.namespaces.of(uri), uri.table

    def load(self, uri: ResultUri) -> Table:
        """The table as it is now, with fresh credentials for its files; NoSuchResultError if there is none."""
        identifier = self.identifier(uri)
        with self._asking(str(uri)) as catalog:
            return catalog.load_table(identifier)

    def exists(self, uri: ResultUri) -> bool:
        """Return whether there is such a table."""
        identifier = self.identifier(uri)
        with self._asking(str(uri)) as catalog:
            return catalog.table_exists(identifier)

    def prepare(self, uri: ResultUri) -> None:
        """Make the namespace, unless there is a stack that declares what a warehouse holds: Lakekeeper's.

        BadAddressError for an address that Texera cannot read.
        """
        uri.check_readable()
        if self.config.kind != "lakekeeper":
            namespace, _ = self.identifier(uri)
            with self._asking(str(uri)) as catalog:
                catalog.create_namespace_if_not_exists(namespace)

    def create_or_load(self, uri: ResultUri, schema: pa.Schema) -> Table:
        """Return the table, which is created if it is not there; one that is there keeps its rows and columns.

        All columns optional, field ids from 1 on, no partitions: as Texera makes them.
        """
        identifier = self.identifier(uri)
        self.prepare(uri)
        optional = pa.schema(
            [pa.field(field.name, field.type, nullable=True, metadata=field.metadata) for field in schema]
        )
        with self._asking(str(uri)) as catalog:
            try:
                return catalog.create_table(identifier, optional, properties=dict(PROPERTIES))
            except TableAlreadyExistsError:
                return catalog.load_table(identifier)

    def drop(self, uri: ResultUri) -> bool:
        """Drop the table with its files; False if there was none."""
        identifier = self.identifier(uri)
        with self._asking(str(uri)) as catalog:
            return self._drop(catalog, identifier)

    def existing(self) -> Iterator[tuple[ResultKind, str]]:
        """Kind and name of every table in the namespaces of results; a namespace that is not there has none."""
        for kind, namespace in self.namespaces.names.items():
            with self._asking(f"namespace {namespace}") as catalog:
                try:
                    names = [name for *_, name in catalog.list_tables(namespace)]
                except NoSuchNamespaceError:
                    continue
            yield from ((kind, name) for name in sorted(names))

    def results(self) -> Iterator[ResultUri]:
        """The address of every table that is a result; others may be in the same namespaces."""
        for kind, name in self.existing():
            uri = ResultUri.of_table(name, self.warehouse)
            if uri and uri.kind is kind:
                yield uri

    @contextmanager
    def _asking(self, what: str) -> Generator[Catalog, None, None]:
        catalog = self.catalogs.get(self.config, self.warehouse)
        with explain_errors(self.config, self.warehouse, what):
            yield catalog

    def _drop(self, catalog: Catalog, identifier: tuple[str, str]) -> bool:
        # Not Spark's DROP TABLE: it leaves `purgeRequested` out, which Lakekeeper takes for yes and other catalogs for
        # no, and with PURGE it deletes files itself, those that Lakekeeper may have deleted already.
        try:
            catalog.purge_table(identifier)
        except NoSuchTableError:
            return False
        return True


def size_of(table: Table) -> tuple[int, int]:
    """Rows and bytes of the table's data, as its current snapshot tells them."""
    snapshot = table.current_snapshot()
    summary = snapshot.summary if snapshot else None
    rows, size = (int(summary[key] or 0) if summary else 0 for key in ("total-records", "total-files-size"))
    return rows, size


def written_tables(tables: ResultTables, workflow: int, execution: int) -> list[WrittenTable]:
    """What an execution has in the catalog now, with rows and bytes."""
    run = Execution(workflow, execution, tables.warehouse)
    uris = [uri for uri in tables.results() if uri.execution == run]
    return [WrittenTable(uri, *size_of(tables.load(uri))) for uri in uris]
