"""Tables: create, stage, register, list, load, exist, credentials, rename, drop."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.catalog.call import Call, CatalogCall, Listing, OpenTabular
from lakewright_sandbox.lakekeeper.catalog.idempotency import Idempotency
from lakewright_sandbox.lakekeeper.catalog.locations import (
    check_empty,
    check_location_free,
    normalize_location,
    tabular_location,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.fresh_ids import check_schema
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import (
    choose_format_version,
    decode_metadata,
    encode_metadata,
    metadata_file,
    new_metadata,
    to_stored_form,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.table_properties import CODEC, check_codec, check_supported
from lakewright_sandbox.lakekeeper.catalog.scope import NamespacePath
from lakewright_sandbox.lakekeeper.catalog.tabulars import (
    NewTabular,
    RenameRequest,
    check_new_name,
    drop_tabular,
    list_tabulars,
    new_tabular,
    rename_tabular,
)
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Flag, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response

Json = dict[str, Any]

TABLE = "/namespaces/{namespace}/tables/{table}"

router = APIRouter(prefix="/catalog/v1/{prefix}")


class CreateTable(Body):
    """Request to create or stage a table."""

    name: str
    location: str | None = None
    table_schema: Json = Field(alias="schema")
    partition_spec: Json | None = None
    write_order: Json | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = None


class RegisterTable(Body):
    """Request to register a table by its metadata file."""

    name: str
    metadata_location: str
    overwrite: bool | None = False


class MetricsReport(Body):
    """Metrics of a scan or commit."""

    report_type: str


@router.get("/namespaces/{namespace}/tables")
def list_tables(call: Call, namespace: NamespacePath, listing: Listing) -> Response:
    """List the tables of a namespace."""
    return list_tabulars(call, namespace, "table", listing)


@router.post("/namespaces/{namespace}/tables")
def create_table(
    call: Call,
    namespace: NamespacePath,
    idempotency: Idempotency,
    body: Annotated[CreateTable, read_body(CreateTable)],
) -> Response:
    """Create or stage a table."""
    return idempotency.run(
        lambda: _create(call, namespace, body),
        None if body.stage_create else lambda: _load(call, namespace, body.name),
    )


def _create(call: CatalogCall, path: tuple[str, ...], body: CreateTable) -> Response:
    check_supported(body.properties or {})
    with call.server.database.read() as session:
        opened = call.open(session)
        namespace = opened.namespace(path)
        check_new_name(session, namespace, body.name, "Table")
    check_schema(body.table_schema)
    properties, warehouse = dict(body.properties or {}), opened.warehouse
    check_codec(properties)
    version = choose_format_version(properties, warehouse.allowed_format_versions, warehouse.default_format_version)
    now, profile = call.server.clock.now(), opened.storage.profile
    table = new_tabular("table", namespace, body.name, now)
    if body.location:
        table.location = normalize_location(profile, body.location)
    else:
        table.location = tabular_location(profile, namespace, body.name, table.id)
    document = to_stored_form(
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
    with call.server.database.read() as session:
        check_location_free(session, table, table.location)
    objects = call.objects(opened.storage)
    check_empty(objects, table.location)
    if not body.stage_create:
        uri = metadata_file(table.location, 0, properties.get(CODEC))
        objects.write(uri, encode_metadata(document, uri))
        table.metadata_location = uri
    NewTabular(call.server, table, objects).insert()
    return load_result(opened.open_created(namespace, table))


@router.post("/namespaces/{namespace}/register")
def register_table(
    call: Call,
    namespace: NamespacePath,
    idempotency: Idempotency,
    body: Annotated[RegisterTable, read_body(RegisterTable)],
) -> Response:
    """Register a table whose metadata file exists."""
    return idempotency.run(lambda: _register(call, namespace, body), lambda: _load(call, namespace, body.name))


def _register(call: CatalogCall, path: tuple[str, ...], body: RegisterTable) -> Response:
    """Register a metadata file, which is kept if the registration fails."""
    with call.server.database.read() as session:
        opened = call.open(session)
        namespace = opened.namespace(path)
        if not body.overwrite:
            check_new_name(session, namespace, body.name, "Table")
    profile = opened.storage.profile
    normalize_location(profile, body.metadata_location)
    document = decode_metadata(call.objects(opened.storage).read(body.metadata_location), body.metadata_location)
    check_supported(document.get("properties") or {})
    table = new_tabular("table", namespace, body.name, call.server.clock.now())
    table.id, table.location = document["table-uuid"], normalize_location(profile, document["location"])
    table.metadata_location = body.metadata_location
    table.document = json.dumps(document, separators=(",", ":"))
    NewTabular(call.server, table, None, overwrite=bool(body.overwrite)).insert()
    return load_result(opened.open_created(namespace, table))


@router.get(TABLE)
def load_table(
    call: Call,
    namespace: NamespacePath,
    table: str,
    snapshots: str = "all",
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return a table with its metadata and access."""
    return _load(call, namespace, table, refs_only=snapshots == "refs", known_etags=if_none_match)


def _load(
    call: CatalogCall, path: tuple[str, ...], name: str, *, refs_only: bool = False, known_etags: str | None = None
) -> Response:
    with call.server.database.read() as session:
        loaded = call.open(session).find(path, name, "table")
    location = loaded.tabular.metadata_location
    if known_etags and location is not None:
        client_tags = [tag.strip() for tag in known_etags.split(",")]
        if tag := call.etags.match(client_tags, location, call.delegation, vends=loaded.access.vends(call.delegation)):
            return Response(status_code=304, headers={"etag": tag})
    return load_result(loaded, refs_only=refs_only)


def load_result(loaded: OpenTabular, *, refs_only: bool = False) -> Response:
    """Return Iceberg's LoadTableResult; with `refs_only`, with the snapshots that a branch or tag points to alone.

    The metadata location of a staged table is null.
    """
    document = json.loads(loaded.tabular.document)
    if refs_only and "snapshots" in document:
        referenced_ids = {ref["snapshot-id"] for ref in document["refs"].values()}
        snapshots = document["snapshots"]
        document["snapshots"] = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] in referenced_ids]
    body: Json = {"metadata-location": loaded.tabular.metadata_location, "metadata": document}
    access = loaded.access.to_json(loaded.call.delegation)
    location = loaded.tabular.metadata_location
    tag = loaded.call.etags.build_for_load(location, loaded.call.delegation, access) if location is not None else None
    return json_response(body | access, headers={"etag": tag} if tag else None)


@router.head(TABLE)
def table_exists(call: Call, namespace: NamespacePath, table: str) -> Response:
    """Respond with 204 if a table exists."""
    with call.server.database.read() as session:
        call.open(session).find(namespace, table, "table")
    return empty()


@router.get(TABLE + "/credentials")
def table_credentials(call: Call, namespace: NamespacePath, table: str) -> Response:
    """Return credentials of a table, also of a staged table, whose writer may need to renew its first credentials."""
    with call.server.database.read() as session:
        loaded = call.open(session).find(namespace, table, "table", staged=True)
    return json_response({"storage-credentials": loaded.access.storage_credentials()})


@router.post(TABLE + "/metrics")
def report_metrics(_body: Annotated[MetricsReport, read_body(MetricsReport)]) -> Response:
    """Accept and discard metrics, as the real server does, even if the table no longer exists."""
    return empty()


@router.post("/tables/rename")
def rename_table(
    call: Call, idempotency: Idempotency, body: Annotated[RenameRequest, read_body(RenameRequest)]
) -> Response:
    """Rename a table or move it to another namespace."""
    return idempotency.run(lambda: rename_tabular(call, "table", body))


@router.delete(TABLE)
def drop_table(
    call: Call,
    namespace: NamespacePath,
    table: str,
    idempotency: Idempotency,
    *,
    purge: Annotated[Flag | None, Query(alias="purgeRequested")] = None,
    force: Flag = False,
) -> Response:
    """Drop a table."""
    return idempotency.run(lambda: drop_tabular(call, namespace, table, "table", purge=purge, force=force))
