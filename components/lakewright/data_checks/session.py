"""Access to one tenant's warehouses, tables and roles, with the identity of the stack. It only reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import httpx
from lakewright_spark.catalog import CatalogWarehouse

from lakewright.client_access.catalog_access import CatalogAccess
from lakewright.client_access.object_store import TableStore, open_s3_http
from lakewright.client_access.probe_table import Location, WarehouseTables
from lakewright.client_access.role_documents import AwsSettings
from lakewright.data_checks.result import NotEvaluatedError
from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import roles, warehouses
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.names.table_name import QualifiedName
from lakewright.spec import TenantSpec
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.storage.live_storage import is_in_s3
from lakewright.validation.documents import as_mapping

CONCURRENT_LOADS = 8
"""Tables that are loaded concurrently."""


@dataclass(frozen=True)
class CheckTarget:
    """One tenant."""

    stack: str
    spec: TenantSpec
    server: ServerRef
    """The Lakekeeper server, with the identity of the stack."""
    aws: AwsSettings
    """The AWS identity of the stack."""
    resolve: Callable[[str], str]
    """Returns the secret of a reference."""


@dataclass
class CheckSession:
    """Access for the checks of a tenant. Data that its checks share is read once."""

    target: CheckTarget
    client: Client
    now: datetime
    """Time of the run, in UTC."""
    _tables_by_scope: dict[tuple[str, Path | None], list[Tabular]] = field(
        default_factory=dict[tuple[str, Path | None], list[Tabular]]
    )
    _locations: dict[QualifiedName, Location | None] = field(default_factory=dict[QualifiedName, Location | None])

    @cached_property
    def warehouses(self) -> dict[str, dict[str, Any]]:
        """The project's active warehouses in the server's JSON, by lower-case name."""
        active_warehouses = warehouses.list_all(self.client, self.target.spec.project_id)
        return {str(warehouse["name"]).casefold(): warehouse for warehouse in active_warehouses}

    @cached_property
    def role_ids(self) -> dict[str, str]:
        """The project's roles by name."""
        return {str(role["name"]): str(role["id"]) for role in roles.list_all(self.client, self.target.spec.project_id)}

    @cached_property
    def http(self) -> httpx.Client:
        """HTTP client for S3."""
        storages = self.target.spec.storage.values()
        return open_s3_http(
            self.target.server.ca_bundle,
            [certificates for storage in storages if (certificates := storage.store_certificates)],
        )

    @property
    def identity(self) -> str:
        """The identity of the stack at Lakekeeper, for reports."""
        auth = self.target.server.auth
        name = getattr(auth, "client_id", None)
        return f"stack ({auth.kind}{f' {name}' if name else ''})"

    def find_warehouse_id(self, name: str) -> str | None:
        """Return the id of a warehouse; None if the server does not list it."""
        warehouse = self.warehouses.get(name.casefold())
        return warehouses.read_id(warehouse) if warehouse else None

    def require_warehouse(self, name: str) -> str:
        """Return the id of a warehouse.

        Raises:
            NotEvaluatedError: The server does not list it.
        """
        warehouse_id = self.find_warehouse_id(name)
        if warehouse_id is None:
            raise NotEvaluatedError(f"warehouse {name} is not on the server; run `lakewright up`")
        return warehouse_id

    def load_metadata(self, table: QualifiedName) -> dict[str, Any] | None:
        """Return the metadata of a table with its referenced snapshots; None if there is no such table."""
        warehouse_id = self.find_warehouse_id(table.warehouse)
        return tables.load(self.client, warehouse_id, table.namespace, table.name) if warehouse_id else None

    def load_all_snapshots(self, table: QualifiedName) -> list[dict[str, Any]]:
        """Return all snapshots of a table."""
        path = tables.url(self.require_warehouse(table.warehouse), table.namespace, table.name)
        loaded = self.client.json("GET", path, params={"snapshots": "all"}, headers=tables.NO_CREDENTIALS)
        return list(loaded["metadata"].get("snapshots") or [])

    def list_tables(self, warehouse: str, namespace: Path | None = None) -> Sequence[Tabular]:
        """Return the tables of a warehouse or namespace and of all nested namespaces. They are listed once."""
        warehouse_id = self.require_warehouse(warehouse)
        key = (warehouse_id, namespace)
        if key not in self._tables_by_scope:
            self._tables_by_scope[key] = self._walk_namespaces(warehouse_id, namespace)
        return self._tables_by_scope[key]

    def load_locations(self, warehouse: str, tables: Sequence[Tabular]) -> list[Location]:
        """Return the locations of a warehouse's tables, which are loaded once. Tables that were dropped have none."""
        names = [QualifiedName(warehouse, table.namespace, table.name) for table in tables]
        unloaded = [name for name in names if name not in self._locations]
        with ThreadPoolExecutor(CONCURRENT_LOADS) as pool:
            self._locations.update(zip(unloaded, pool.map(self._load_location, unloaded), strict=True))
        return [location for name in names if (location := self._locations[name])]

    def load_table_files(self, table: QualifiedName) -> tuple[dict[str, Any], TableStore]:
        """Return a table's metadata, and access to its files by credentials that the catalog vends or signs with.

        Raises:
            VerifyError: The catalog gives this identity no access.
            NotEvaluatedError: The warehouse is not on the server, or not in S3.
        """
        warehouse = self.find_declared_warehouse(table.warehouse)
        warehouse_id = self.require_warehouse(warehouse.name)
        self._require_s3(warehouse.name)
        catalog_warehouse = CatalogWarehouse(
            name=warehouse.name,
            id=warehouse_id,
            delegation=warehouse.delegation,
            namespaces=[],
            s3={},
        )
        requests = WarehouseTables(
            CatalogAccess(self.client), catalog_warehouse, self.target.spec.project_id, self.http
        )
        loaded = requests.load_table(tables.url(warehouse_id, table.namespace, table.name))
        return loaded["metadata"], requests.open_store(loaded)

    def read_file(self, store: TableStore, uri: str) -> bytes:
        """Return the content of a file of a table.

        Raises:
            NotEvaluatedError: It cannot be read.
        """
        if not uri.startswith(("s3://", "s3a://", "s3n://")):
            raise NotEvaluatedError(f"{uri}: only files in S3 can be read; check `newer_than` without `column`")
        location = Location.parse(uri)
        response = store.send("GET", location.bucket, location.key)
        if not response.is_success:
            raise NotEvaluatedError(
                f"{location.key.rpartition('/')[2]} of the table cannot be read: S3 responded with {response}"
            )
        return response.content

    def find_declared_warehouse(self, warehouse: str) -> WarehouseSpec:
        """Return the warehouse of the spec."""
        return next(spec for spec in self.target.spec.warehouses if spec.name == warehouse)

    def find_bucket(self, warehouse: str) -> tuple[OwnBucket, str]:
        """Return the bucket of a warehouse, as the stack reaches it, and the warehouse's key prefix.

        Raises:
            NotEvaluatedError: The warehouse is not on the server, or not in S3.
        """
        self.require_warehouse(warehouse)
        profile = self._require_s3(warehouse)
        spec, account = self.target.spec, self.target.aws
        access = spec.storage[spec.find_storage_name(self.find_declared_warehouse(warehouse))].stack_access
        if access is None:
            file = account.shared_credentials_file
            access = {
                "bucket": str(profile["bucket"]),
                "region": str(profile["region"]),
                "endpoint": account.endpoint,
                "profile": account.profile,
                "shared_credentials_file": str(file) if file else None,
            }
        bucket = OwnBucket.model_validate(access).with_resolver(self.target.resolve)
        return bucket, str(profile.get("key-prefix") or "").strip("/")

    def _require_s3(self, warehouse: str) -> Mapping[str, Any]:
        """Return the storage profile of a warehouse on the server. Raises NotEvaluatedError if it is not on S3."""
        profile = as_mapping(self.warehouses[warehouse.casefold()].get("storage-profile"))
        if not is_in_s3(profile):
            raise NotEvaluatedError(
                f"warehouse {warehouse} is on {profile.get('type')}; checks read files and list objects on S3 only"
            )
        return profile

    def close(self) -> None:
        """Close the connections to S3."""
        if "http" in self.__dict__:
            self.http.close()

    def _load_location(self, table: QualifiedName) -> Location | None:
        metadata = self.load_metadata(table)
        return Location.parse(str(metadata["location"])) if metadata else None

    def _walk_namespaces(self, warehouse_id: str, namespace: Path | None) -> list[Tabular]:
        pending = (
            [namespace] if namespace else [child.path for child in namespaces.list_children(self.client, warehouse_id)]
        )
        all_tables: list[Tabular] = []
        while pending:
            path = pending.pop()
            all_tables += tabulars.list_kind(self.client, warehouse_id, path, "table")
            pending += [child.path for child in namespaces.list_children(self.client, warehouse_id, path)]
        return all_tables
