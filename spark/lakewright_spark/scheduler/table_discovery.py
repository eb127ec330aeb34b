"""Discover the tables of a warehouse, with their metadata: nested namespaces, several tables at a time."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.maintenance.table.facts import TableFacts, table_facts
from lakewright_spark.policies.model import JOBS, JobName
from lakewright_spark.pyiceberg_client.catalog import explain_errors, list_namespaces
from lakewright_spark.pyiceberg_client.read_errors import ALL_TABLES, reason_unreadable
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True)
class Filters:
    """Selection of namespaces, tables and jobs. Everything by default."""

    namespace: re.Pattern[str] | None = None
    """Matches the whole namespace, levels joined by a dot."""
    table: re.Pattern[str] | None = None
    """Matches the whole name of the table."""
    jobs: Collection[JobName] = JOBS

    @property
    def is_every_table(self) -> bool:
        """Return whether no table is filtered out."""
        return self.namespace is None and self.table is None

    def wants_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Return whether the namespace is selected."""
        return self.namespace is None or self.namespace.fullmatch(".".join(namespace)) is not None

    def wants(self, table: TableIdentifier) -> bool:
        """Return whether the table is selected."""
        return self.wants_namespace(table.namespace) and (
            self.table is None or self.table.fullmatch(table.name) is not None
        )


PARALLEL = 8
"""Tables whose metadata is loaded at the same time."""
READ_AHEAD = 64
"""Maximum number of tables whose metadata waits in memory: that of 10,000 tables takes gigabytes."""


@dataclass(frozen=True)
class UnreadableTable:
    """A table that cannot be read, or all tables of a namespace that cannot be listed."""

    table: TableIdentifier
    reason: str
    """One line."""

    @property
    def is_namespace(self) -> bool:
        """Return whether this stands for all tables of a namespace."""
        return self.table.name == ALL_TABLES


def discover_tables(
    config: CatalogConfig, warehouse: str, catalog: Catalog, filters: Filters, stop: threading.Event
) -> Iterator[TableFacts | UnreadableTable]:
    """Yield the selected tables in the order of their names, without views, until `stop` is set.

    Tables that are dropped in the meantime are left out. Namespaces that cannot be listed come first.

    Raises:
        CatalogUnreachableError, IdentityError, JobFailedError: The catalog as a whole cannot be used.
    """
    with explain_errors(config, warehouse):
        unlisted: list[UnreadableTable] = []
        names = sorted(_names(warehouse, catalog, filters, unlisted), key=lambda table: table.within)
        yield from {unreadable.table: unreadable for unreadable in unlisted}.values()
        remaining = iter(names)

        def load(table: TableIdentifier) -> TableFacts | UnreadableTable | None:
            return None if stop.is_set() else _load_facts(catalog, table)

        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="metadata") as pool:
            while batch := list(islice(remaining, READ_AHEAD)):
                for facts in pool.map(load, batch):
                    if facts is not None:
                        yield facts


def _names(
    warehouse: str, catalog: Catalog, filters: Filters, unlisted: list[UnreadableTable]
) -> Iterator[TableIdentifier]:
    def leave_out(namespace: tuple[str, ...], error: Exception) -> None:
        if filters.wants_namespace(namespace):
            table = TableIdentifier(warehouse, namespace, ALL_TABLES)
            unlisted.append(UnreadableTable(table, reason_unreadable(catalog, error)))

    for namespace in list_namespaces(catalog, on_error=leave_out):
        if not filters.wants_namespace(namespace):
            continue
        try:
            identifiers = catalog.list_tables(namespace)
        except NoSuchNamespaceError:
            continue
        except Exception as error:  # noqa: BLE001  # any error: it must not affect other namespaces
            leave_out(namespace, error)
            continue
        for identifier in identifiers:
            table = TableIdentifier(warehouse, tuple(identifier[:-1]), identifier[-1])
            if filters.wants(table):
                yield table


def _load_facts(catalog: Catalog, table: TableIdentifier) -> TableFacts | UnreadableTable | None:
    try:
        return table_facts(table, load_metadata(catalog, table.within))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
        return UnreadableTable(table, reason_unreadable(catalog, error))
