"""Every table of a warehouse, with what its metadata says: namespaces to any depth, several tables at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_catalog import explained
from lakewright_spark.pyiceberg_walk import namespaces
from lakewright_spark.scheduler.facts import TableFacts, table_facts
from lakewright_spark.scheduler.filters import Filters
from lakewright_spark.table_identifier import TableIdentifier

AT_ONCE = 8
"""Tables whose metadata is asked for at the same time."""


def tables(
    config: CatalogConfig, warehouse: str, catalog: Catalog, filters: Filters, stop: threading.Event
) -> Iterator[TableFacts]:
    """The tables that the filters want, views left out, in the order of their names; it ends early once `stop` is set.

    A table that somebody drops meanwhile is left out. Raises CatalogUnreachableError, IdentityError, JobFailedError.
    """
    with explained(config, warehouse):
        names = sorted(_names(warehouse, catalog, filters), key=lambda one: one.within)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="metadata") as pool:
            for facts in pool.map(lambda name: None if stop.is_set() else _facts(catalog, name), names):
                if facts is not None:
                    yield facts


def _names(warehouse: str, catalog: Catalog, filters: Filters) -> Iterator[TableIdentifier]:
    for namespace in namespaces(catalog):
        if filters.wants_namespace(namespace):
            with suppress(NoSuchNamespaceError):
                for identifier in catalog.list_tables(namespace):
                    table = TableIdentifier(warehouse, tuple(identifier[:-1]), identifier[-1])
                    if filters.wants(table):
                        yield table


def _facts(catalog: Catalog, table: TableIdentifier) -> TableFacts | None:
    try:
        return table_facts(table, catalog.load_table(table.within))
    except NoSuchTableError:
        return None
