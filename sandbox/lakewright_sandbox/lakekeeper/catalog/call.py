"""One request to the catalog: its warehouse, and the table or view that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.catalog.delegation import AccessDelegation, Delegation, TabularAccess
from lakewright_sandbox.lakekeeper.catalog.etags import TableETags
from lakewright_sandbox.lakekeeper.catalog.scope import BaseUri, WarehouseId
from lakewright_sandbox.lakekeeper.database.lookups import find_namespace, find_tabular, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow, WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, tabular_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Flag
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server
from lakewright_sandbox.lakekeeper.storage.access import AnyStorage
from lakewright_sandbox.lakekeeper.storage.object_store import ObjectStore


@dataclass(frozen=True)
class CatalogCall:
    """A request within a warehouse, with the client's requested delegation and the server's address."""

    server: Lakekeeper
    warehouse_id: str
    delegation: Delegation
    base_uri: str

    def open(self, session: Session) -> OpenWarehouse:
        """Return the warehouse. Raises 404 if it is missing or inactive."""
        warehouse = find_warehouse(session, self.warehouse_id, active=True)
        try:
            storage = self.server.open_storage(session, warehouse)
        except ApiError as error:
            return OpenWarehouse(self, session, warehouse, error)
        return OpenWarehouse(self, session, warehouse, storage)

    @property
    def etags(self) -> TableETags:
        """The rules of the played release for ETags of tables."""
        settings = self.server.settings
        return TableETags(
            is_before_0_13=not settings.is_at_least("0.13"),
            has_shapes=settings.is_at_least("0.14"),
            now=self.server.clock.now() // 1000,
        )

    def objects(self, storage: AnyStorage) -> ObjectStore:
        """Return the objects of a storage."""
        return self.server.access.objects(storage)


@dataclass(frozen=True)
class OpenWarehouse:
    """The warehouse of a call, read in a session."""

    call: CatalogCall
    session: Session
    warehouse: WarehouseRow
    storage_or_error: AnyStorage | ApiError

    @property
    def storage(self) -> AnyStorage:
        """Return the storage. Raises the `ApiError` that says why its data cannot be accessed."""
        if isinstance(self.storage_or_error, ApiError):
            raise self.storage_or_error
        return self.storage_or_error

    def namespace(self, path: Sequence[str]) -> NamespaceRow:
        """Return a namespace. Raises 404."""
        return find_namespace(self.session, self.warehouse.id, path)

    def find(self, path: Sequence[str], name: str, kind: str, *, staged: bool = False) -> OpenTabular:
        """Return the table or view. Raises 404 for the table even if its namespace is missing.

        Spark looks up a metadata table such as `table.files` as `files` in a namespace `table` first, and continues
        with the table only after `NoSuchTableException`.
        """
        try:
            namespace = self.namespace(path)
        except ApiError as missing:
            if missing.kind != "NoSuchNamespaceException":
                raise
            raise tabular_missing(kind) from missing
        tabular = find_tabular(self.session, namespace, name, kind, staged=staged)
        target, authorizer = Target.from_tabular(tabular), self.call.server.authorizer
        readable = authorizer.may(self.session, target, "read_data" if kind == "table" else "select")
        writable = authorizer.may(self.session, target, "commit")
        return replace(self.open_created(namespace, tabular), readable=readable, writable=writable)

    def open_created(self, namespace: NamespaceRow, tabular: TabularRow) -> OpenTabular:
        """Return a table or view that the caller has just created and may read and write."""
        return OpenTabular(self.call, self.warehouse, self.storage, namespace, tabular)


@dataclass(frozen=True)
class OpenTabular:
    """A table or view with its storage; usable after its session ended."""

    call: CatalogCall
    warehouse: WarehouseRow
    storage: AnyStorage
    namespace: NamespaceRow
    tabular: TabularRow
    readable: bool = True
    writable: bool = True

    @property
    def access(self) -> TabularAccess:
        """Return the access that its client gets."""
        return TabularAccess(
            server=self.call.server,
            storage=self.storage,
            warehouse_id=self.warehouse.id,
            tabular_id=self.tabular.id,
            location=self.tabular.location,
            namespace=self.namespace.path,
            name=self.tabular.name,
            base_uri=self.call.base_uri,
            readable=self.readable,
            writable=self.writable,
        )


async def catalog_call(
    server: Server, warehouse: WarehouseId, delegation: AccessDelegation, base: BaseUri
) -> CatalogCall:
    """Return the call of a request."""
    return CatalogCall(server, warehouse, delegation, base)


Call = Annotated[CatalogCall, Depends(catalog_call)]


@dataclass(frozen=True)
class ListOptions:
    """Query parameters of the catalog's listings."""

    page_token: str | None
    page_size: int | None
    uuids: bool
    protection: bool


async def list_options(
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize")] = None,
    *,
    return_uuids: Annotated[Flag, Query(alias="returnUuids")] = False,
    return_protection: Annotated[Flag, Query(alias="returnProtectionStatus")] = False,
) -> ListOptions:
    """Return the query parameters of a listing."""
    return ListOptions(page_token, page_size, return_uuids, return_protection)


Listing = Annotated[ListOptions, Depends(list_options)]
