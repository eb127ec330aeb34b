"""Tables: create, stage, register, list, load, exist, credentials, rename, drop."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from ..errors import ApiError
from ..models import Namespace, Tabular, Warehouse
from ..requests import Flag, IcebergBody, read_body
from ..responses import empty, json_response
from ..server import Lakekeeper, Server, find_warehouse
from ..storage import WarehouseStorage
from .delegation import AccessDelegation, Delegation, TabularAccess, chosen_format_version
from .idempotency import Idempotency
from .locations import checked_location, tabular_location
from .scope import BaseUri, NamespacePath, WarehouseId, find_namespace, find_tabular
from .table_metadata import decoded, encoded, metadata_file, new_metadata, stored_form
from .tabulars import (
    RenameRequest,
    check_new_name,
    drop_tabular,
    insert_tabular,
    list_tabulars,
    new_tabular,
    rename_tabular,
)

Json = dict[str, Any]

router = APIRouter(prefix="/catalog/v1/{prefix}")


class CreateTable(IcebergBody):
    name: str
    location: str | None = None
    table_schema: Json = Field(validation_alias="schema")
    partition_spec: Json | None = None
    write_order: Json | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = None


class MetricsReport(IcebergBody):
    report_type: str


class RegisterTable(IcebergBody):
    name: str
    metadata_location: str
    overwrite: bool | None = False


@router.get("/namespaces/{namespace}/tables")
def list_tables(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize")] = None,
    return_uuids: Annotated[Flag, Query(alias="returnUuids")] = False,
    return_protection: Annotated[Flag, Query(alias="returnProtectionStatus")] = False,
) -> Response:
    return list_tabulars(
        server, warehouse, namespace, "table", page_token, page_size, uuids=return_uuids, protection=return_protection
    )


@router.post("/namespaces/{namespace}/tables")
def create_table(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    delegation: AccessDelegation,
    base: BaseUri,
    idempotency: Idempotency,
    body: CreateTable = read_body(CreateTable),
) -> Response:
    def create() -> Response:
        return _create(server, warehouse, namespace, body, delegation, base)

    def again() -> Response:
        return _load(server, warehouse, namespace, body.name, delegation, base)

    return idempotency.run(create, None if body.stage_create else again)


def _create(
    server: Lakekeeper,
    warehouse_id: str,
    path: tuple[str, ...],
    body: CreateTable,
    delegation: Delegation,
    base: str,
) -> Response:
    with server.database.read() as session:
        warehouse = find_warehouse(session, warehouse_id, active=True)
        namespace = find_namespace(session, warehouse_id, path)
        storage = server.storage_of(session, warehouse)
        check_new_name(session, namespace, body.name, "Table")
    properties = dict(body.properties or {})
    version = chosen_format_version(properties, warehouse.allowed_format_versions, warehouse.default_format_version)
    now = server.clock.now()
    table = new_tabular("table", namespace, body.name, now)
    if body.location:
        table.location = checked_location(storage.profile, body.location)
    else:
        table.location = tabular_location(storage.profile, namespace, body.name, table.id)
    document = stored_form(
        new_metadata(
            table.id,
            table.location,
            version,
            now // 1000,
            schema=body.table_schema,
            partition_spec=body.partition_spec,
            write_order=body.write_order,
            properties=properties,
        )
    )
    table.document = json.dumps(document, separators=(",", ":"))
    objects = server.access.objects(storage)
    if body.location and not objects.is_empty(table.location):
        raise ApiError(
            409, "LocationNotEmpty", f"Unexpected files in location `{table.location}`, cannot create table."
        )
    if not body.stage_create:
        table.metadata_location = metadata_file(table.location, 0, properties.get("write.metadata.compression-codec"))
        objects.write(table.metadata_location, encoded(document, table.metadata_location))
    insert_tabular(server, warehouse_id, table, objects, check_location=bool(body.location))
    return load_result(server, storage, warehouse, namespace, table, delegation, base)


@router.post("/namespaces/{namespace}/register")
def register_table(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    delegation: AccessDelegation,
    base: BaseUri,
    idempotency: Idempotency,
    body: RegisterTable = read_body(RegisterTable),
) -> Response:
    def register() -> Response:
        return _register(server, warehouse, namespace, body, delegation, base)

    def again() -> Response:
        return _load(server, warehouse, namespace, body.name, delegation, base)

    return idempotency.run(register, again)


def _register(
    server: Lakekeeper,
    warehouse_id: str,
    path: tuple[str, ...],
    body: RegisterTable,
    delegation: Delegation,
    base: str,
) -> Response:
    with server.database.read() as session:
        warehouse = find_warehouse(session, warehouse_id, active=True)
        namespace = find_namespace(session, warehouse_id, path)
        storage = server.storage_of(session, warehouse)
        if not body.overwrite:
            check_new_name(session, namespace, body.name, "Table")
    checked_location(storage.profile, body.metadata_location)
    objects = server.access.objects(storage)
    document = decoded(objects.read(body.metadata_location))
    table = new_tabular("table", namespace, body.name, server.clock.now())
    table.id = document["table-uuid"]
    table.location = checked_location(storage.profile, document["location"])
    table.metadata_location = body.metadata_location
    table.document = json.dumps(document, separators=(",", ":"))
    insert_tabular(server, warehouse_id, table, None, check_location=True, overwrite=bool(body.overwrite))
    return load_result(server, storage, warehouse, namespace, table, delegation, base)


@router.get("/namespaces/{namespace}/tables/{table}")
def load_table(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    table: str,
    delegation: AccessDelegation,
    base: BaseUri,
    snapshots: str = "all",
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    refs_only = snapshots == "refs"
    return _load(server, warehouse, namespace, table, delegation, base, refs_only=refs_only, known=if_none_match)


def _load(
    server: Lakekeeper,
    warehouse_id: str,
    path: tuple[str, ...],
    name: str,
    delegation: Delegation,
    base: str,
    *,
    refs_only: bool = False,
    known: str | None = None,
) -> Response:
    with server.database.read() as session:
        warehouse = find_warehouse(session, warehouse_id, active=True)
        namespace = find_namespace(session, warehouse_id, path)
        table = find_tabular(session, namespace, name, "table")
        storage = server.storage_of(session, warehouse)
    tag = etag(table)
    if known and tag and tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers={"etag": tag})
    return load_result(server, storage, warehouse, namespace, table, delegation, base, refs_only=refs_only)


def load_result(
    server: Lakekeeper,
    storage: WarehouseStorage,
    warehouse: Warehouse,
    namespace: Namespace,
    table: Tabular,
    delegation: Delegation,
    base: str,
    *,
    refs_only: bool = False,
) -> Response:
    """Iceberg's LoadTableResult. With `refs_only`, of the snapshots those that a branch or tag points to."""
    document = json.loads(table.document)
    if refs_only and "snapshots" in document:
        wanted = {ref["snapshot-id"] for ref in document["refs"].values()}
        document["snapshots"] = [one for one in document["snapshots"] if one["snapshot-id"] in wanted]
    access = access_to(server, storage, warehouse.id, namespace, table, base)
    body: Json = {"metadata-location": table.metadata_location} if table.metadata_location else {}
    body |= {"metadata": document, **access.answer(delegation)}
    tag = etag(table)
    return json_response(body, headers={"etag": tag} if tag else None)


def access_to(
    server: Lakekeeper, storage: WarehouseStorage, warehouse_id: str, namespace: Namespace, tabular: Tabular, base: str
) -> TabularAccess:
    location = tabular.location
    return TabularAccess(server, storage, warehouse_id, tabular.id, location, namespace.path, tabular.name, base)


def etag(table: Tabular) -> str | None:
    if table.metadata_location is None:
        return None
    return f'"{hashlib.sha256(table.metadata_location.encode()).hexdigest()[:32]}"'


@router.head("/namespaces/{namespace}/tables/{table}")
def table_exists(server: Server, warehouse: WarehouseId, namespace: NamespacePath, table: str) -> Response:
    with server.database.read() as session:
        find_warehouse(session, warehouse, active=True)
        find_tabular(session, find_namespace(session, warehouse, namespace), table, "table")
    return empty()


@router.get("/namespaces/{namespace}/tables/{table}/credentials")
def table_credentials(
    server: Server, warehouse: WarehouseId, namespace: NamespacePath, table: str, base: BaseUri
) -> Response:
    with server.database.read() as session:
        storage = server.storage_of(session, find_warehouse(session, warehouse, active=True))
        parent = find_namespace(session, warehouse, namespace)
        found = find_tabular(session, parent, table, "table", staged=True)
    access = access_to(server, storage, warehouse, parent, found, base)
    return json_response({"storage-credentials": access.storage_credentials()})


@router.post("/namespaces/{namespace}/tables/{table}/metrics")
def report_metrics(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    table: str,
    _report: MetricsReport = read_body(MetricsReport),
) -> Response:
    """Taken and thrown away, as the real server does."""
    return table_exists(server, warehouse, namespace, table)


@router.post("/tables/rename")
def rename_table(
    server: Server, warehouse: WarehouseId, idempotency: Idempotency, body: RenameRequest = read_body(RenameRequest)
) -> Response:
    return idempotency.run(lambda: rename_tabular(server, warehouse, "table", body))


@router.delete("/namespaces/{namespace}/tables/{table}")
def drop_table(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    table: str,
    idempotency: Idempotency,
    purge: Annotated[Flag, Query(alias="purgeRequested")] = True,
    force: Flag = False,
) -> Response:
    return idempotency.run(lambda: drop_tabular(server, warehouse, namespace, table, "table", purge=purge, force=force))
