"""Every table of a warehouse, with what its metadata says: namespaces to any depth, several tables at a time."""

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
from lakewright_spark.policies.model import JOBS, Job
from lakewright_spark.pyiceberg_client.catalog import explained, namespaces
from lakewright_spark.pyiceberg_client.read_errors import EVERY_TABLE, reason_unreadable
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True)
class Filters:
    """What is looked at; all of it by default."""

    namespace: re.Pattern[str] | None = None
    """Has to match the whole namespace, its levels joined by a dot."""
    table: re.Pattern[str] | None = None
    """Has to match the whole name of the table."""
    jobs: Collection[Job] = JOBS

    @property
    def is_every_table(self) -> bool:
        """Whether no table is left out."""
        return self.namespace is None and self.table is None

    def wants_namespace(self, namespace: tuple[str, ...]) -> bool:
        return self.namespace is None or self.namespace.fullmatch(".".join(namespace)) is not None

    def wants(self, table: TableIdentifier) -> bool:
        return self.wants_namespace(table.namespace) and (
            self.table is None or self.table.fullmatch(table.name) is not None
        )


AT_ONCE = 8
"""Tables whose metadata is asked for at the same time."""
AHEAD = 64
"""Tables whose metadata is kept at most before it is used: that of 10,000 tables takes gigabytes."""


@dataclass(frozen=True)
class Unreadable:
    """A table that cannot be read, or all tables of a namespace that cannot be listed."""

    table: TableIdentifier
    reason: str
    """One line."""

    @property
    def is_namespace(self) -> bool:
        return self.table.name == EVERY_TABLE


def tables(
    config: CatalogConfig, warehouse: str, catalog: Catalog, filters: Filters, stop: threading.Event
) -> Iterator[TableFacts | Unreadable]:
    """Yield the tables that the filters want, views left out, in the order of their names, until `stop` is set.

    A table that is dropped meanwhile is left out. Namespaces that cannot be listed come first.

    Raises:
        CatalogUnreachableError, IdentityError, JobFailedError: The catalog as a whole cannot be used.
    """
    with explained(config, warehouse):
        unlisted: list[Unreadable] = []
        names = sorted(_names(warehouse, catalog, filters, unlisted), key=lambda one: one.within)
        yield from {one.table: one for one in unlisted}.values()
        left = iter(names)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="metadata") as pool:
            while batch := list(islice(left, AHEAD)):
                for found in pool.map(lambda name: None if stop.is_set() else _facts(catalog, name), batch):
                    if found is not None:
                        yield found


def _names(warehouse: str, catalog: Catalog, filters: Filters, unlisted: list[Unreadable]) -> Iterator[TableIdentifier]:
    def leave_out(namespace: tuple[str, ...], error: Exception) -> None:
        if filters.wants_namespace(namespace):
            table = TableIdentifier(warehouse, namespace, EVERY_TABLE)
            unlisted.append(Unreadable(table, reason_unreadable(catalog, error)))

    for namespace in namespaces(catalog, on_error=leave_out):
        if not filters.wants_namespace(namespace):
            continue
        try:
            found = catalog.list_tables(namespace)
        except NoSuchNamespaceError:
            continue
        except Exception as error:  # noqa: BLE001  # of whatever kind: the other namespaces are not concerned
            leave_out(namespace, error)
            continue
        for identifier in found:
            table = TableIdentifier(warehouse, tuple(identifier[:-1]), identifier[-1])
            if filters.wants(table):
                yield table


def _facts(catalog: Catalog, table: TableIdentifier) -> TableFacts | Unreadable | None:
    try:
        return table_facts(table, catalog.load_table(table.within))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # noqa: BLE001  # of whatever kind: the other tables are not concerned
        return Unreadable(table, reason_unreadable(catalog, error))
