"""ResultTables: create, load, list and drop the result tables of a warehouse through PyIceberg."""

from __future__ import annotations

import warnings
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
from lakewright_spark.migration.fence import refuse_to_drop
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS, CatalogCache
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.result_uris import Execution, ResultKind, ResultNamespaces, ResultUri

PROPERTIES: Mapping[str, str] = {
    **COMMIT_RETRIES,
    # Each commit, every few seconds, writes a manifest. After merging, a reader opens tens of manifests, not thousands.
    "commit.manifest-merge.enabled": "true",
    # A page is read by row groups; PyIceberg's default of 1,048,576 rows would make most files one of them.
    "write.parquet.row-group-limit": "65536",
    # Streams commit often, and each commit writes a metadata file with all snapshots. Lakekeeper deletes them itself.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    # For Spark and for compaction, whose default is 128 MiB.
    "write.parquet.row-group-size-bytes": "4194304",
}
"""Table properties of every result."""

# PyIceberg has a limit of its own, above, and would warn at every commit.
warnings.filterwarnings(
    "ignore", r"Parquet writer option\(s\) \['write.parquet.row-group-size-bytes'\] not implemented"
)


@dataclass(frozen=True)
class ResultTables:
    """The results in one warehouse. Every method raises this package's errors."""

    config: CatalogConfig
    warehouse: str
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces)
    catalogs: CatalogCache = field(default=CATALOGS, repr=False, compare=False)

    def identifier(self, uri: ResultUri) -> tuple[str, str]:
        """Return namespace and name of the table. Raises WarehouseRefusedError if it is in another warehouse."""
        if uri.warehouse not in {None, self.warehouse}:
            raise WarehouseRefusedError(f"{uri} is in warehouse {uri.warehouse!r}, and this is {self.warehouse!r}")
        return self.namespaces.look_up(uri), uri.table

    def load(self, uri: ResultUri) -> Table:
        """Return the current table with fresh credentials for its files. Raises NoSuchResultError if there is none."""
        identifier = self.identifier(uri)
        with self._open_catalog(str(uri)) as catalog:
            return catalog.load_table(identifier)

    def exists(self, uri: ResultUri) -> bool:
        """Return whether the table exists."""
        identifier = self.identifier(uri)
        with self._open_catalog(str(uri)) as catalog:
            return catalog.table_exists(identifier)

    def prepare(self, uri: ResultUri) -> None:
        """Create the namespace, except in Lakekeeper, where a stack declares the namespaces.

        Raises BadAddressError for an address that Texera cannot read.
        """
        uri.check_readable()
        if self.config.kind != "lakekeeper":
            namespace, _ = self.identifier(uri)
            with self._open_catalog(str(uri)) as catalog:
                catalog.create_namespace_if_not_exists(namespace)

    def create_or_load(self, uri: ResultUri, schema: pa.Schema) -> Table:
        """Return the table, and create it if it does not exist. An existing table keeps its rows and columns.

        A new table has optional columns, field ids that begin with 1, and no partitions, like Texera's tables.
        """
        identifier = self.identifier(uri)
        self.prepare(uri)
        optional = pa.schema(
            [pa.field(field.name, field.type, nullable=True, metadata=field.metadata) for field in schema]
        )
        with self._open_catalog(str(uri)) as catalog:
            try:
                return catalog.create_table(identifier, optional, properties=dict(PROPERTIES))
            except TableAlreadyExistsError:
                return catalog.load_table(identifier)

    def drop(self, uri: ResultUri) -> bool:
        """Drop the table with its files. Return False if it did not exist."""
        identifier = self.identifier(uri)
        with self._open_catalog(str(uri)) as catalog:
            return self._drop(catalog, identifier)

    def list_tables(self) -> Iterator[tuple[ResultKind, str]]:
        """Yield kind and name of every table in the namespaces of results that exist."""
        for kind, namespace in self.namespaces.names.items():
            with self._open_catalog(f"namespace {namespace}") as catalog:
                try:
                    names = [name for *_, name in catalog.list_tables(namespace)]
                except NoSuchNamespaceError:
                    continue
            yield from ((kind, name) for name in sorted(names))

    def list_results(self) -> Iterator[ResultUri]:
        """Yield the address of every result table. Other tables may be in the same namespaces."""
        for kind, name in self.list_tables():
            uri = ResultUri.from_table_name(name, self.warehouse)
            if uri and uri.kind is kind:
                yield uri

    @contextmanager
    def _open_catalog(self, action: str) -> Generator[Catalog, None, None]:
        catalog = self.catalogs.get(self.config, self.warehouse)
        with explain_errors(self.config, self.warehouse, action):
            yield catalog

    def _drop(self, catalog: Catalog, identifier: tuple[str, str]) -> bool:
        # Not Spark's DROP TABLE: it omits `purgeRequested`, which Lakekeeper takes for yes and other catalogs for no.
        # With PURGE it deletes the files itself, which Lakekeeper may have deleted already.
        try:
            refuse_to_drop(f"table {'.'.join(identifier)}", load_metadata(catalog, identifier).properties)
            catalog.purge_table(identifier)
        except NoSuchTableError:
            return False
        return True


def measure_size(table: Table) -> tuple[int, int]:
    """Return rows and bytes of the table's data from the summary of its current snapshot."""
    snapshot = table.current_snapshot()
    summary = snapshot.summary if snapshot else None
    rows, size = (int(summary[key] or 0) if summary else 0 for key in ("total-records", "total-files-size"))
    return rows, size


def list_written_tables(tables: ResultTables, workflow: int, execution: int) -> list[WrittenTable]:
    """Return the tables of an execution that the catalog has now, with rows and bytes."""
    run = Execution(workflow, execution, tables.warehouse)
    uris = [uri for uri in tables.list_results() if uri.execution == run]
    return [WrittenTable(uri, *measure_size(tables.load(uri))) for uri in uris]
