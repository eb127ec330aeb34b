"""A table that a probe makes with the identity of a computing unit, writes, reads and drops."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import httpx
from lakewright_spark.catalog import DELEGATION_HEADER, DELEGATION_VALUES, CatalogWarehouse

from lakewright.client_access import iceberg_files
from lakewright.client_access.catalog_access import CatalogAccess
from lakewright.client_access.check import ProbeFailedError
from lakewright.client_access.object_store import (
    S3Method,
    SignedStore,
    StoreAddress,
    StoreResponse,
    TableStore,
    VendedKeys,
    VendedStore,
)
from lakewright.validation.documents import as_mapping

PREFIX = "lakewright_verify_"
"""How the names of probe namespaces begin."""
CREATED = "lakewright-verify-created"
"""Property of a probe namespace: Unix time in seconds at which it was made."""
ABANDONED_AFTER = 3600
"""Seconds after which a probe namespace belongs to no running `verify`."""


def make_namespace_name() -> str:
    """Return the name of a new probe namespace."""
    return f"{PREFIX}{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Location:
    """A location in a bucket."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, uri: str) -> Location:
        """Return the location of an `s3://` or `s3a://` URI."""
        _, _, path = uri.partition("://")
        bucket, _, key = path.partition("/")
        return cls(bucket, key.strip("/"))


class WarehouseTables:
    """Requests about tables of one warehouse."""

    def __init__(
        self, catalog: CatalogAccess, warehouse: CatalogWarehouse, project: str | None, http: httpx.Client
    ) -> None:
        """Use the identity of `catalog`; `http` reaches S3."""
        self.catalog, self.warehouse, self.project, self._http = catalog, warehouse, project, http
        self.root = f"/catalog/v1/{warehouse.id}/namespaces"
        self._headers = {DELEGATION_HEADER: DELEGATION_VALUES[warehouse.delegation]}

    def create_namespace(self, name: str) -> None:
        """Create a probe namespace."""
        body = {"namespace": [name], "properties": {CREATED: str(int(time.time()))}}
        self.catalog.require("POST", self.root, body=body, project=self.project)

    def drop_namespace(self, name: str) -> None:
        """Drop a probe namespace with everything in it. A namespace that does not exist is dropped already."""
        params = {"recursive": True, "force": True, "purge": self.warehouse.may_delete}
        response = self.catalog.request("DELETE", f"{self.root}/{name}", params=params, project=self.project)
        if not response.is_success and response.status != 404:
            raise ProbeFailedError(f"namespace {name} of warehouse {self.warehouse.name} was not dropped: {response}")

    def drop_abandoned(self) -> None:
        """Drop the probe namespaces that a killed run left."""
        namespaces = [
            levels
            for page in self.catalog.list_pages(self.root, self.project)
            for levels in cast(list[list[str]], page.get("namespaces") or [])
        ]
        for levels in namespaces:
            if len(levels) == 1 and levels[0].startswith(PREFIX) and self._is_abandoned(levels[0]):
                self.drop_namespace(levels[0])

    def _is_abandoned(self, name: str) -> bool:
        response = self.catalog.request("GET", f"{self.root}/{name}", project=self.project)
        created = str(as_mapping(response.body.get("properties")).get(CREATED, ""))
        return created.isdigit() and time.time() - int(created) > ABANDONED_AFTER

    def create_table(self, namespace: str, name: str, format_version: int) -> ProbeTable:
        """Create an empty table. The catalog writes its first metadata file."""
        body = {
            "name": name,
            "schema": dict(iceberg_files.SCHEMA),
            "properties": {"format-version": str(format_version)},
        }
        path = f"{self.root}/{namespace}/tables"
        response = self.catalog.require("POST", path, body=body, project=self.project, headers=self._headers)
        return ProbeTable(self, f"{path}/{quote(name)}", response.body)

    def load_table(self, path: str) -> dict[str, Any]:
        """Return a table as the catalog loads it, with access to its files."""
        return self.catalog.require("GET", path, project=self.project, headers=self._headers).body

    def open_store(self, loaded: dict[str, Any]) -> TableStore:
        """Return access to the files of a loaded table, as the warehouse delegates it.

        Raises:
            ProbeFailedError: The catalog gave no such access.
        """
        config = cast(dict[str, str], loaded.get("config") or {})
        vended = cast(list[dict[str, Any]], loaded.get("storage-credentials") or [])
        if vended:
            config = {**config, **cast(dict[str, str], vended[0].get("config") or {})}
        address = StoreAddress.from_config({**self.warehouse.s3, **config})
        if self.warehouse.delegation == "remote-signing":
            endpoint = config.get("signer.endpoint") or config.get("s3.signer.endpoint")
            if endpoint is None:
                raise ProbeFailedError(f"warehouse {self.warehouse.name}: the catalog named no endpoint to sign at")
            return SignedStore(address, self.catalog, f"/catalog/{endpoint.lstrip('/')}", self._http, self.project)
        keys = VendedKeys.from_config(config)
        if keys is None:
            raise ProbeFailedError(f"warehouse {self.warehouse.name}: the catalog vended no credentials")
        return VendedStore(address, keys, self._http)


class ProbeTable:
    """One table of a probe."""

    def __init__(self, tables: WarehouseTables, path: str, loaded: dict[str, Any]) -> None:
        """Take the response that created the table."""
        self._tables, self.path = tables, path
        self.metadata: dict[str, Any] = loaded["metadata"]
        self.store = tables.open_store(loaded)
        self.location = Location.parse(str(self.metadata["location"]))
        self.metadata_file = Location.parse(str(loaded["metadata-location"]))

    def append(self) -> StoreResponse:
        """Write a data file and commit a snapshot with it. Return the response to the data file."""
        snapshot_id, now = secrets.randbits(62) + 1, int(time.time() * 1000)
        snapshot = iceberg_files.make_snapshot(self.metadata, snapshot_id, now)
        written = self._require("PUT", snapshot.data_path, iceberg_files.DATA_FILE)
        self._require("PUT", snapshot.manifest_path, snapshot.manifest)
        self._require("PUT", snapshot.manifest_list_path, snapshot.manifest_list)
        reference = {"type": "branch", "ref-name": "main", "snapshot-id": snapshot_id}
        body = {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": self.metadata["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot.entry},
                {"action": "set-snapshot-ref", **reference},
            ],
        }
        committed = self._tables.catalog.require("POST", self.path, body=body, project=self._tables.project)
        self.metadata = committed.body["metadata"]
        return written

    def read(self) -> StoreResponse:
        """Load the table again and follow its snapshot down to the data file, whose response is returned.

        Raises:
            ProbeFailedError: A step was refused, or the data file differs from the written file.
        """
        loaded = self._tables.load_table(self.path)
        metadata = loaded["metadata"]
        self.store = self._tables.open_store(loaded)
        current = metadata["current-snapshot-id"]
        snapshot = next(part for part in metadata["snapshots"] if part["snapshot-id"] == current)
        manifests = iceberg_files.list_manifest_paths(self._require("GET", snapshot["manifest-list"]).content)
        paths = [
            path for name in manifests for path in iceberg_files.list_data_paths(self._require("GET", name).content)
        ]
        responses = [self._require("GET", path) for path in paths]
        if [response.content for response in responses] != [iceberg_files.DATA_FILE]:
            raise ProbeFailedError(f"table {self.path}: the data file that was read differs from the written file")
        return responses[0]

    def drop(self) -> str:
        """Drop the table and purge its files. Return the evidence."""
        params = {"purgeRequested": self._tables.warehouse.may_delete, "force": True}
        dropped = self._tables.catalog.require("DELETE", self.path, params=params, project=self._tables.project)
        after = self._tables.catalog.request("GET", self.path, project=self._tables.project)
        if after.status != 404:
            raise ProbeFailedError(f"table {self.path} still exists after its drop: {after}")
        return f"{dropped}, then {after}"

    def _require(self, method: S3Method, uri: str, content: bytes = b"") -> StoreResponse:
        location = Location.parse(uri)
        response = self.store.send(method, location.bucket, location.key, content=content)
        if not response.is_success:
            name = location.key.rpartition("/")[2]
            raise ProbeFailedError(f"{method} {name} of the table: expected success, found {response}")
        return response
