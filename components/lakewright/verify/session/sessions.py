"""Context of the probes: the tenant, its identities, its warehouses, and probe tables that are made on first use."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse

from lakewright.client_access.catalog_access import AnonymousAccess, CatalogAccess
from lakewright.client_access.check import ProbeFailedError
from lakewright.client_access.object_store import open_s3_http
from lakewright.client_access.probe_table import ProbeTable, WarehouseTables, make_namespace_name
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.names.object_names import namespace_name
from lakewright.spec import TenantSpec
from lakewright.validation.documents import as_list, as_mapping
from lakewright.validation.yaml_text import load_yaml
from lakewright.verify.session.cluster import TenantCluster
from lakewright.verify.session.once_property import OnceProperty
from lakewright.verify.session.settings import VerifySettings
from lakewright.verify.session.stack_warehouses import OtherTenants, StackWarehouse, is_same_server, is_same_store
from lakewright.verify.session.subjects import ProbeIdentity, obtain_credential

RETRY = RetryPolicy(attempts=3)


@dataclass(frozen=True)
class TenantSession:
    """The tenant of a run."""

    spec: TenantSpec
    settings: VerifySettings
    config: CatalogConfig
    warehouses: Sequence[StackWarehouse]
    """The stack's warehouses."""
    other_tenants: OtherTenants = field(default_factory=OtherTenants)
    """The project's other stacks."""

    @property
    def other_warehouses(self) -> Sequence[StackWarehouse]:
        """Warehouses of the project's other stacks."""
        return self.other_tenants.warehouses

    @property
    def other_warehouses_on_server(self) -> list[StackWarehouse]:
        """Warehouses of other stacks on the tenant's Lakekeeper server, at any address."""
        endpoint = self.settings.server.endpoint
        return [
            warehouse for warehouse in self.other_warehouses if is_same_server(warehouse, self.warehouses, endpoint)
        ]

    def list_other_warehouses_on_store(self, warehouse: StackWarehouse) -> list[StackWarehouse]:
        """Return the warehouses of other stacks on the store of a warehouse."""
        return [other for other in self.other_warehouses if is_same_store(other, warehouse)]

    @property
    def not_probed(self) -> list[str]:
        """Other tenants that the probes do not try to reach, each with the reason."""
        on_server = {(warehouse.stack, warehouse.name) for warehouse in self.other_warehouses_on_server}
        on_store = {
            (other.stack, other.name)
            for warehouse in self.warehouses
            for other in self.list_other_warehouses_on_store(warehouse)
        }
        lines = [f"not probed: {reason}" for reason in self.other_tenants.unread]
        for warehouse in self.other_warehouses:
            key, title = (
                (warehouse.stack, warehouse.name),
                f"not probed: tenant {warehouse.tenant}'s {warehouse.name}",
            )
            if key not in on_server:
                reason = (
                    "is another server" if warehouse.server_id else "may be another server: its state has no server id"
                )
                lines.append(f"{title} on the catalog: {warehouse.endpoint} {reason}")
            if warehouse.service != "s3":
                lines.append(f"{title} at its storage: it is on {warehouse.service}, and probes of files are for S3")
            elif key not in on_store:
                lines.append(f"{title} at S3: {warehouse.store or 'AWS'} is another store")
        return lines

    @OnceProperty
    def cluster(self) -> TenantCluster | None:
        """The tenant's namespace; None if the environment only renders manifests."""
        settings = self.settings.cluster
        return None if settings.rendered else TenantCluster(settings.context, namespace_name(self.spec.name))

    @OnceProperty
    def s3(self) -> httpx.Client:
        """HTTP client for S3."""
        return open_s3_http(self.settings.server.ca_bundle, self.settings.certificates)

    @OnceProperty
    def manifests(self) -> list[dict[str, Any]]:
        """The Kubernetes objects of the tenant: from the cluster, or from the folder of rendered manifests.

        Raises:
            ProbeFailedError: They cannot be read.
        """
        if self.cluster is not None:
            return [*self.cluster.list_manifests()]
        assert self.settings.cluster.rendered is not None
        return _read_rendered(self.settings.cluster.rendered)

    @property
    def has_units(self) -> bool:
        """Return whether the tenant has pods."""
        return bool(self.spec.computing_units or self.spec.maintenance)

    def find_warehouse(self, name: str) -> StackWarehouse:
        """Return a warehouse of the stack's state, with the location of its data.

        Raises:
            ProbeFailedError: The state does not have it.
        """
        for warehouse in self.warehouses:
            if warehouse.name == name:
                return warehouse
        raise ProbeFailedError(f"warehouse {name} is not in the stack's state; run `lakewright up`")


@dataclass(frozen=True)
class IdentitySession:
    """The tenant with one identity."""

    tenant: TenantSession
    subject: ProbeIdentity
    visible_warehouses: tuple[str, ...] = ()
    """All warehouses that the identity may see. `subject` has the warehouses in which tables are probed."""

    @OnceProperty
    def catalog(self) -> CatalogAccess:
        """Access through the catalog's address of jobs.

        Raises:
            IdentityUnavailableError: The credential cannot be obtained.
        """
        return self._open_access(_strip_catalog_path(self.tenant.config.uri))

    @OnceProperty
    def server(self) -> CatalogAccess:
        """Access through the server's own address, which stacks use; units may be unable to reach it."""
        endpoint = self.tenant.settings.server.endpoint
        return self.catalog if endpoint == self.catalog.endpoint else self._open_access(endpoint)

    def _open_access(self, endpoint: str) -> CatalogAccess:
        tenant = self.tenant
        settings = tenant.settings.server
        auth, resolve = obtain_credential(self.subject, lambda: tenant.cluster, tenant.settings.resolve)
        reference = ServerRef(
            endpoint=endpoint,
            auth=auth,
            ca_bundle=settings.ca_bundle,
            allow_plain_http=settings.allow_plain_http or None,
            project_id=tenant.config.project_id,
        )
        access_type = AnonymousAccess if self.subject.source is None else CatalogAccess
        return access_type(Client(reference, resolve, retry=RETRY))


@dataclass
class WarehouseSession:
    """One identity in one of its warehouses. The probe tables are made on first use. Thread-safe."""

    identity: IdentitySession
    warehouse: CatalogWarehouse
    namespaces: list[str] = field(default_factory=list[str])
    """Probe namespaces that this run made: none, or one."""
    _tables: dict[str, Future[ProbeTable]] = field(default_factory=dict[str, Future[ProbeTable]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def tenant(self) -> TenantSession:
        """The tenant."""
        return self.identity.tenant

    @property
    def stack_warehouse(self) -> StackWarehouse:
        """The warehouse in the stack's state, with the location of its data."""
        return self.tenant.find_warehouse(self.warehouse.name)

    @OnceProperty
    def tables(self) -> WarehouseTables:
        """Requests about the warehouse's tables."""
        return WarehouseTables(self.identity.catalog, self.warehouse, self.tenant.config.project_id, self.tenant.s3)

    def ensure_table(self, name: str = "first") -> ProbeTable:
        """Return a probe table, and create it on first use.

        Raises:
            VerifyError: It could not be made, now or before.
            LakekeeperError: The server did not respond, now or before.
        """
        with self._lock:
            table = self._tables.get(name)
            if is_first := table is None:
                table = self._tables[name] = Future[ProbeTable]()
        if is_first:
            try:
                table.set_result(self.tables.create_table(self._namespace, name, self._format_version()))
            except BaseException as error:  # noqa: BLE001 - raised below, here and in all waiting probes
                table.set_exception(error)
        return table.result()

    def forget(self, name: str) -> None:
        """Forget a table that was dropped."""
        with self._lock:
            self._tables.pop(name, None)

    def clean_up(self) -> None:
        """Drop the probe namespace with its tables.

        Raises:
            VerifyError: It was not dropped.
            LakekeeperError: The server does not respond.
        """
        while self.namespaces:
            self.tables.drop_namespace(self.namespaces[-1])
            self.namespaces.pop()

    @OnceProperty
    def _namespace(self) -> str:
        """Name of the probe namespace, which is made on first use."""
        self.tables.drop_abandoned()
        namespace = make_namespace_name()
        # Known before the request: its response may be lost.
        self.namespaces.append(namespace)
        self.tables.create_namespace(namespace)
        return namespace

    def _format_version(self) -> int:
        specs = [part for part in self.tenant.spec.warehouses if part.name == self.warehouse.name]
        allowed = [int(version) for part in specs for version in part.format_versions or ()]
        return 2 if not allowed or 2 in allowed else max(allowed)


def _strip_catalog_path(catalog: str) -> str:
    """Return a catalog's address without `/catalog`, which the paths of requests begin with.

    Raises:
        ProbeFailedError: It ends in something else.
    """
    origin = catalog.rstrip("/").removesuffix("/catalog")
    if origin == catalog.rstrip("/"):
        raise ProbeFailedError(f"catalog address {catalog}: expected an address that ends in /catalog")
    return origin


def _read_rendered(folder: Path) -> list[dict[str, Any]]:
    manifests: list[dict[str, Any]] = []
    for file in sorted(folder.rglob("*.yaml")):
        try:
            document = as_mapping(load_yaml(file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ProbeFailedError(f"{file} cannot be read: {type(error).__name__}") from None
        items = as_list(document.get("items")) or [document]
        manifests += [dict(as_mapping(item)) for item in items]
    return manifests
