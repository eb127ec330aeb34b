"""Endpoint: one catalog of a migration, with the calls that a migration needs and that PyIceberg lacks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, cast

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import API_PREFIX, Capability, Endpoints, RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate
from pyiceberg.typedef import Identifier
from requests import Session as HttpSession

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.stored_properties import restore_stored_properties
from lakewright_spark.pyiceberg_client.catalog import (
    build_management_url,
    explain_errors,
    list_namespaces,
    open_catalog,
)
from lakewright_spark.pyiceberg_client.database_catalog import DatabaseCatalog
from lakewright_spark.pyiceberg_client.hadoop_catalog import HadoopCatalog
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata

ATTEMPTS = 8
"""Attempts to commit properties while other writers commit."""
MOVED = "__moved"
"""Ending of the name of a table or view that a cut-over has taken from its writers."""
COPYING = "__copying"
"""Ending of the name of a view whose history is not complete yet."""
RENAME_VIEW = "views/rename"
_VIEW_CALLS = {
    f"{method} {API_PREFIX}/{path}"
    for method, path in (
        ("POST", Endpoints.create_view),
        ("GET", Endpoints.load_view),
        ("POST", Endpoints.load_view),
        ("DELETE", Endpoints.drop_view),
        ("POST", RENAME_VIEW),
    )
}
"""Calls without which a view cannot be migrated."""

_MAX_WRITTEN_VERSION = 2
"""Last format version of which PyIceberg 0.12 writes the metadata file itself."""


def rename_moved(identifier: Identifier) -> Identifier:
    """Return the name under which a catalog keeps a table whose writers use the other catalog."""
    return (*identifier[:-1], f"{identifier[-1]}{MOVED}")


def rename_copying(identifier: Identifier) -> Identifier:
    """Return the name under which the target has a view whose history is not complete yet."""
    return (*identifier[:-1], f"{identifier[-1]}{COPYING}")


def find_original_name(identifier: Identifier) -> Identifier | None:
    """Return the name from which a migration makes this name; None for other names.

    >>> find_original_name(("sales", "orders__moved")), find_original_name(("sales", "orders"))
    (('sales', 'orders'), None)
    """
    for ending in (MOVED, COPYING):
        if identifier[-1].endswith(ending):
            return (*identifier[:-1], identifier[-1].removesuffix(ending))
    return None


class Mover(Protocol):
    """The calls that differ between the kinds of catalogs."""

    def stop_writers(self, identifier: Identifier) -> None:
        """Keep a table from its writers and readers. A commit that is under way fails."""
        ...

    def resume_writers(self, identifier: Identifier) -> None:
        """Reverse `stop_writers`."""
        ...

    def explain_resumption(self, identifier: Identifier, stopped: Table) -> str:
        """Return how a user reverses `stop_writers`, as an instruction."""
        ...

    def load_stopped(self, identifier: Identifier) -> Table | None:
        """Return a table that `stop_writers` has taken from its writers; None if there is no such table."""
        ...

    def repoint_stopped(self, table: Table, identifier: Identifier, metadata_location: str) -> None:
        """Let a stopped table have another metadata file."""
        ...

    def mark_stopped(self, identifier: Identifier, properties: dict[str, str]) -> None:
        """Let `load_stopped` return these properties, too."""
        ...

    def forget_stopped(self, identifier: Identifier) -> None:
        """Remove a stopped table from the catalog, and keep its files."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """A warehouse in the source or target catalog. Methods raise this package's errors."""

    config: CatalogConfig
    warehouse: str
    catalog: Catalog
    _namespaces: set[Identifier] = field(default_factory=set[Identifier], repr=False, compare=False)
    """Namespaces that are known to exist."""

    @classmethod
    def open(cls, config: CatalogConfig, warehouse: str) -> Endpoint:
        """Open the catalog of a warehouse."""
        return cls(config, warehouse, open_catalog(config, warehouse))

    def __str__(self) -> str:
        """Return the text form."""
        return f"warehouse {self.warehouse} of {self.config.uri}"

    @property
    def mover(self) -> Mover:
        """Return the calls of this kind of catalog."""
        return HadoopMover(self, self.catalog) if isinstance(self.catalog, HadoopCatalog) else RenamingMover(self)

    @property
    def refuses_stale_changes(self) -> bool:
        """Return whether `change_properties` compares the table with its state in the catalog."""
        return isinstance(self.catalog, DatabaseCatalog)

    def list_tables(self) -> Iterator[Identifier]:
        """Yield the names of all tables, without tables that a cut-over has taken from their writers."""
        return (identifier for identifier in self.list_all_tables() if not identifier[-1].endswith(MOVED))

    def list_all_tables(self) -> Iterator[Identifier]:
        """Yield the names of all tables."""
        with explain_errors(self.config, self.warehouse):
            for namespace in list_namespaces(self.catalog):
                for identifier in self.catalog.list_tables(namespace):
                    yield (*namespace, identifier[-1])

    def can_write(self, table: Table) -> bool:
        """Return whether a table of this format version can be changed. Servers write metadata files themselves."""
        writes_files = isinstance(self.catalog, DatabaseCatalog | HadoopCatalog)
        return not writes_files or table.metadata.format_version <= _MAX_WRITTEN_VERSION

    @property
    def has_views(self) -> bool:
        """Return whether views can be read and written: only through Iceberg REST, and not with every server."""
        return self._supported_calls >= _VIEW_CALLS

    @property
    def lists_views(self) -> bool:
        """Return whether the catalog can say which views it has. A Hadoop catalog has none."""
        return not isinstance(self.catalog, RestCatalog) or str(Capability.V1_LIST_VIEWS) in self._supported_calls

    @property
    def _supported_calls(self) -> set[str]:
        """Return the calls that a REST server advertises, as method and path; no calls of other catalogs."""
        if not isinstance(self.catalog, RestCatalog):
            return set()
        return {str(call) for call in cast(Any, self.catalog)._supported_endpoints}

    def list_views(self) -> list[Identifier]:
        """Return the names of all views; no names if `lists_views` is false."""
        with explain_errors(self.config, self.warehouse):
            if isinstance(self.catalog, HadoopCatalog):
                return []
            return [
                (*namespace, view[-1])
                for namespace in list_namespaces(self.catalog)
                for view in self.catalog.list_views(namespace)
            ]

    def find_table(self, identifier: Identifier) -> Table | None:
        """Return a table; None if it does not exist."""
        with explain_errors(self.config, self.warehouse, f"table {'.'.join(identifier)}"):
            try:
                return restore_stored_properties(load_metadata(self.catalog, identifier))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def create_namespace(self, namespace: Identifier) -> None:
        """Create a namespace and its parents, unless they exist."""
        if namespace in self._namespaces:
            return
        with explain_errors(self.config, self.warehouse, f"namespace {'.'.join(namespace)}"):
            for length in range(1, len(namespace) + 1):
                if not self.catalog.namespace_exists(namespace[:length]):
                    try:
                        self.catalog.create_namespace(namespace[:length])
                    except NamespaceAlreadyExistsError:
                        continue
        self._namespaces.add(namespace)

    def change_properties(
        self, table: Table, build: Callable[[Mapping[str, str]], tuple[Mapping[str, str], Collection[str]]]
    ) -> None:
        """Commit properties of a table, again if another writer commits in between.

        Args:
            table: The table.
            build: Returns the properties to set and to remove, given the table's current properties.
        """
        with explain_errors(self.config, self.warehouse, f"table {'.'.join(table.name())}"):
            for attempt in range(ATTEMPTS):
                values, removed = build(table.properties)
                try:
                    self._commit_properties(table, values, [name for name in removed if name in table.properties])
                except CommitFailedException:
                    if attempt == ATTEMPTS - 1:
                        raise
                    time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311  # no secret
                    restore_stored_properties(table.refresh())
                else:
                    restore_stored_properties(table)
                    return

    def _commit_properties(self, table: Table, values: Mapping[str, str], removed: list[str]) -> None:
        if isinstance(self.catalog, DatabaseCatalog):
            updates = (SetPropertiesUpdate(updates=dict(values)), RemovePropertiesUpdate(removals=removed))
            self.catalog.commit_loaded(table, updates if removed else updates[:1])
            return
        with table.transaction() as change:
            change.set_properties(dict(values))
            if removed:
                change.remove_properties(*removed)

    def register(self, identifier: Identifier, metadata_location: str) -> Table:
        """Register a table by its metadata file, and return it. The table must not exist."""
        with explain_errors(self.config, self.warehouse, f"table {'.'.join(identifier)}"):
            try:
                return self.catalog.register_table(identifier, metadata_location)
            except TableAlreadyExistsError as error:
                raise MigrationError(
                    f"{self} refuses to register {'.'.join(identifier)}: expected a free name, id and location, "
                    f"found: {str(error).splitlines()[0]}. If {'.'.join(rename_moved(identifier))} has the id since a "
                    "promotion, drop it without its files"
                ) from error

    def choose_location(self, identifier: Identifier, schema: Schema) -> str:
        """Return a location for a new table that the catalog chooses. The table is not created."""
        with explain_errors(self.config, self.warehouse, f"table {'.'.join(identifier)}"):
            return self.catalog.create_table_transaction(identifier, schema).table_metadata.location

    def repoint(self, table: Table, identifier: Identifier, metadata_location: str) -> None:
        """Let a table have another metadata file."""
        with explain_errors(self.config, self.warehouse, f"table {'.'.join(identifier)}"):
            if isinstance(self.catalog, DatabaseCatalog):
                if not self.catalog.swap_pointer(identifier, table.metadata_location, metadata_location):
                    raise MigrationError(
                        f"{self}: table {'.'.join(identifier)} was changed by another writer; try again"
                    )
                return
            was_protected = self.is_protected(table)
            self.protect(table, is_protected=False)
            try:
                cast(RestCatalog, self.catalog).register_table(identifier, metadata_location, overwrite=True)
            except TableAlreadyExistsError:
                # A server whose registrations overwrite nothing.
                self.catalog.drop_table(identifier)
                self.catalog.register_table(identifier, metadata_location)
            if was_protected:
                self.protect(table, is_protected=True)

    def drop(self, identifier: Identifier) -> None:
        """Remove a table from the catalog and keep its files."""
        with explain_errors(self.config, self.warehouse, f"table {'.'.join(identifier)}"):
            if self.config.kind == "lakekeeper":
                self._drop_from_lakekeeper(cast(RestCatalog, self.catalog), identifier)
            else:
                self.catalog.drop_table(identifier)

    def is_protected(self, table: Table) -> bool:
        """Return whether the server refuses to drop the table. Only Lakekeeper has such a protection.

        A table counts as not protected if this identity may not read its protection.

        Raises:
            MigrationError: The server responded with another error.
        """
        if self.config.kind != "lakekeeper":
            return False
        name = f"table {'.'.join(table.name())}"
        with explain_errors(self.config, self.warehouse, name):
            response = self.session.get(self._protection_url(table))
        if response.status_code in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            return False
        if not response.ok:
            raise MigrationError(
                f"{self}: expected the protection of {name}, found response {response.status_code}: run the command "
                "again"
            )
        return bool(response.json()["protected"])

    def protect(self, table: Table, *, is_protected: bool) -> bool:
        """Set whether the server refuses to drop a table, and return whether it accepted that.

        Without the right to do so, and with other kinds of catalogs, nothing is changed: the fence's properties remain.
        """
        if self.config.kind != "lakekeeper":
            return False
        return self.session.post(self._protection_url(table), json={"protected": is_protected}).ok

    @property
    def session(self) -> HttpSession:
        """Return PyIceberg's HTTP session, which sends the identity's credential. Only REST catalogs have it."""
        return cast(Any, self.catalog)._session

    def _protection_url(self, table: Table) -> str:
        warehouse_url = build_management_url(self.config, self.warehouse)
        return f"{warehouse_url}/table/{table.metadata.table_uuid}/protection"

    def _drop_from_lakekeeper(self, catalog: RestCatalog, identifier: Identifier) -> None:
        # Without `force`, a warehouse with soft deletion keeps the location taken, and a protected table remains.
        names = catalog._split_identifier_for_path(identifier)  # pyright: ignore[reportPrivateUsage]
        url = catalog.url(Endpoints.drop_table, prefixed=True, **names)
        response = self.session.delete(url, params={"purgeRequested": "false", "force": "true"})
        if not response.ok and response.status_code != HTTPStatus.NOT_FOUND:
            raise MigrationError(
                f"{self} does not drop {'.'.join(identifier)}: it responded with {response.status_code}"
            )


@dataclass(frozen=True)
class RenamingMover:
    """Stops writers by another name of the table: a commit under the old name fails, in a database and in a server."""

    endpoint: Endpoint

    def stop_writers(self, identifier: Identifier) -> None:
        """Rename the table."""
        self._rename(identifier, rename_moved(identifier))

    def resume_writers(self, identifier: Identifier) -> None:
        """Give the table its name back."""
        self._rename(rename_moved(identifier), identifier)

    def explain_resumption(self, identifier: Identifier, stopped: Table) -> str:  # noqa: ARG002
        """Return how to rename the table."""
        return f"rename {'.'.join(rename_moved(identifier))} in {self.endpoint} to {'.'.join(identifier)}"

    def load_stopped(self, identifier: Identifier) -> Table | None:
        """Return the renamed table."""
        return self.endpoint.find_table(rename_moved(identifier))

    def repoint_stopped(self, table: Table, identifier: Identifier, metadata_location: str) -> None:
        """Let the renamed table have another metadata file."""
        self.endpoint.repoint(table, rename_moved(identifier), metadata_location)

    def mark_stopped(self, identifier: Identifier, properties: dict[str, str]) -> None:
        """Set properties of the renamed table."""
        if (table := self.load_stopped(identifier)) is not None:
            self.endpoint.change_properties(table, lambda _: (properties, ()))

    def forget_stopped(self, identifier: Identifier) -> None:
        """Drop the renamed table without its files."""
        self.endpoint.drop(rename_moved(identifier))

    def _rename(self, old: Identifier, new: Identifier) -> None:
        endpoint = self.endpoint
        with explain_errors(endpoint.config, endpoint.warehouse, f"table {'.'.join(old)}"):
            endpoint.catalog.rename_table(old, new)


@dataclass(frozen=True)
class HadoopMover:
    """Stops writers of a Hadoop catalog by a next version that is no table metadata."""

    endpoint: Endpoint
    catalog: HadoopCatalog

    def stop_writers(self, identifier: Identifier) -> None:
        """Write the next version, which no client can read."""
        with self._explain_errors(identifier):
            self.catalog.block(identifier)

    def resume_writers(self, identifier: Identifier) -> None:
        """Delete the version that no client can read."""
        with self._explain_errors(identifier):
            self.catalog.unblock(identifier)

    def explain_resumption(self, identifier: Identifier, stopped: Table) -> str:  # noqa: ARG002
        """Return which versions to delete."""
        return f"delete the metadata files of the versions after {stopped.metadata_location}"

    def load_stopped(self, identifier: Identifier) -> Table | None:
        """Return the table at its last version."""
        with self._explain_errors(identifier):
            return self.catalog.load_blocked(identifier)

    def repoint_stopped(self, table: Table, identifier: Identifier, metadata_location: str) -> None:  # noqa: ARG002
        """Copy the metadata file to the next version of the table, which remains stopped."""
        with self._explain_errors(identifier):
            self.catalog.add_version(identifier, metadata_location)

    def mark_stopped(self, identifier: Identifier, properties: dict[str, str]) -> None:
        """Write the properties into the version that no client can read."""
        with self._explain_errors(identifier):
            self.catalog.mark_block(identifier, properties)

    def forget_stopped(self, identifier: Identifier) -> None:
        """Leave the table stopped: a Hadoop catalog removes a table only with its files."""

    def _explain_errors(self, identifier: Identifier) -> AbstractContextManager[None]:
        return explain_errors(self.endpoint.config, self.endpoint.warehouse, f"table {'.'.join(identifier)}")
