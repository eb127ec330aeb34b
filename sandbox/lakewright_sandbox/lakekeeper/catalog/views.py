"""Views: create, list, load, exist, replace, rename, drop."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import delete, select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.catalog.call import Call, CatalogCall, Listing, OpenTabular, OpenWarehouse
from lakewright_sandbox.lakekeeper.catalog.commit_shapes import ViewRequirement, ViewUpdate
from lakewright_sandbox.lakekeeper.catalog.idempotency import Idempotency
from lakewright_sandbox.lakekeeper.catalog.locations import (
    check_location_free,
    normalize_location,
    tabular_location,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.fresh_ids import check_schema
from lakewright_sandbox.lakekeeper.catalog.metadata.requirements import check_requirements
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import encode_metadata, file_version, metadata_file
from lakewright_sandbox.lakekeeper.catalog.metadata.table_properties import (
    check_codec,
    check_supported,
    check_supported_updates,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.view_metadata import ViewBuilder, new_view
from lakewright_sandbox.lakekeeper.catalog.scope import NamespacePath
from lakewright_sandbox.lakekeeper.catalog.tabulars import (
    NewTabular,
    RenameRequest,
    check_new_name,
    compare_and_swap,
    drop_tabular,
    list_tabulars,
    new_tabular,
    rename_tabular,
)
from lakewright_sandbox.lakekeeper.database.models import DefaultNamespaceRow, NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Flag, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response

Json = dict[str, Any]

VIEW = "/namespaces/{namespace}/views/{view}"

router = APIRouter(prefix="/catalog/v1/{prefix}")


class CreateView(Body):
    """Request to create a view."""

    name: str
    location: str | None = None
    view_schema: Json = Field(alias="schema")
    view_version: Json
    properties: dict[str, str] = Field(default_factory=dict)


class CommitView(Body):
    """Changes of a view, with the requirements for them."""

    requirements: list[ViewRequirement] | None = None
    updates: list[ViewUpdate]


@router.get("/namespaces/{namespace}/views")
def list_views(call: Call, namespace: NamespacePath, listing: Listing) -> Response:
    """List the views of a namespace."""
    return list_tabulars(call, namespace, "view", listing)


@router.post("/namespaces/{namespace}/views")
def create_view(
    call: Call,
    namespace: NamespacePath,
    idempotency: Idempotency,
    body: Annotated[CreateView, read_body(CreateView)],
) -> Response:
    """Create a view."""
    return idempotency.run(lambda: _create(call, namespace, body), lambda: load_view(call, namespace, body.name))


def _create(call: CatalogCall, path: tuple[str, ...], body: CreateView) -> Response:
    check_supported(body.properties)
    check_codec(body.properties)
    with call.server.database.read() as session:
        opened = call.open(session)
        namespace = opened.namespace(path)
        check_new_name(session, namespace, body.name, "View")
        default_namespace = _find_default_namespace(opened, body.view_version)
    check_schema(body.view_schema)
    now, profile = call.server.clock.now(), opened.storage.profile
    view = new_tabular("view", namespace, body.name, now)
    if body.location:
        view.location = normalize_location(profile, body.location)
    else:
        view.location = tabular_location(profile, namespace, body.name, view.id)
    document = new_view(
        view.id,
        view.location,
        schema=body.view_schema,
        version=body.view_version,
        properties=body.properties,
        now=now // 1000,
    )
    version = document["versions"][0]
    stored = {**document, "versions": [_store_version(version, default_namespace)]}
    view.document = json.dumps(stored, separators=(",", ":"))
    uri = metadata_file(view.location, 0, None, view.id)
    view.metadata_location = uri
    objects = call.objects(opened.storage)
    objects.write(uri, encode_metadata(document, uri))
    references = [_refer(view, version, default_namespace)] if default_namespace else []
    NewTabular(call.server, view, objects, default_namespaces=references).insert()
    return _load_result(opened.open_created(namespace, view), document)


def _find_default_namespace(warehouse: OpenWarehouse, version: Json) -> NamespaceRow | None:
    """Return the default namespace of a version; None if the warehouse does not have its name in that case.

    Source: `batch_insert_view_versions` of Lakekeeper 0.12.3 to 0.14. Lakekeeper 0.11 ignores case.
    """
    path: list[str] = version.get("default-namespace") or []
    try:
        namespace = warehouse.namespace(path) if path else None
    except ApiError:
        return None
    is_exact = namespace is not None and namespace.path == path
    return namespace if is_exact or not warehouse.call.server.settings.is_at_least("0.12") else None


def _store_version(version: Json, default_namespace: NamespaceRow | None) -> Json:
    """Return a version as the database has it: with the name of its default namespace, or without.

    The response to the request, and the metadata file, have the name of the request.
    """
    return {**version, "default-namespace": default_namespace.path if default_namespace else []}


def _refer(view: TabularRow, version: Json, default_namespace: NamespaceRow) -> DefaultNamespaceRow:
    return DefaultNamespaceRow(
        warehouse_id=view.warehouse_id,
        view_id=view.id,
        version_id=version["version-id"],
        namespace_id=default_namespace.id,
    )


@router.get(VIEW)
def load_view(call: Call, namespace: NamespacePath, view: str) -> Response:
    """Return a view with its metadata."""
    with call.server.database.read() as session:
        opened = call.open(session).find(namespace, view, "view")
        document = _read_document(session, opened.tabular)
    return _load_result(opened, document)


def _read_document(session: Session, view: TabularRow) -> Json:
    """Return the metadata in the database, with the current names of default namespaces."""
    document = json.loads(view.document)
    query = (
        select(DefaultNamespaceRow.version_id, NamespaceRow.path)
        .join(NamespaceRow, NamespaceRow.id == DefaultNamespaceRow.namespace_id)
        .where(DefaultNamespaceRow.warehouse_id == view.warehouse_id, DefaultNamespaceRow.view_id == view.id)
    )
    paths = {row.version_id: row.path for row in session.execute(query)}
    for version in document["versions"]:
        version["default-namespace"] = paths.get(version["version-id"], version["default-namespace"])
    return document


def _load_result(opened: OpenTabular, document: Json) -> Response:
    access_config = opened.access.to_json(opened.call.delegation)
    location = opened.tabular.metadata_location
    return json_response({"metadata-location": location, "metadata": document, "config": access_config["config"]})


@router.head(VIEW)
def view_exists(call: Call, namespace: NamespacePath, view: str) -> Response:
    """Respond with 204 if a view exists."""
    with call.server.database.read() as session:
        call.open(session).find(namespace, view, "view")
    return empty()


@router.post(VIEW)
def replace_view(
    call: Call,
    namespace: NamespacePath,
    view: str,
    idempotency: Idempotency,
    body: Annotated[CommitView, read_body(CommitView)],
) -> Response:
    """Commit changes to a view."""
    return idempotency.run(lambda: _replace(call, namespace, view, body), lambda: load_view(call, namespace, view))


def _replace(call: CatalogCall, path: tuple[str, ...], name: str, body: CommitView) -> Response:
    check_supported_updates(body.updates)
    now = call.server.clock.now()
    with call.server.database.read() as session:
        opened = call.open(session).find(path, name, "view")
        current = _read_document(session, opened.tabular)
    row = opened.tabular
    old_location = row.metadata_location or ""
    check_requirements(body.requirements or [], current)
    document = ViewBuilder(current, now // 1000).apply(body.updates)
    check_codec(document["properties"])
    if document["location"] != row.location:
        document["location"] = normalize_location(opened.storage.profile, document["location"])
        with call.server.database.read() as session:
            check_location_free(session, row, document["location"])
    uri = metadata_file(document["location"], file_version(old_location) + 1, None)
    objects = call.objects(opened.storage)
    objects.write(uri, encode_metadata(document, uri))
    with call.server.database.write() as session:
        warehouse = call.open(session)
        namespaces = [_find_default_namespace(warehouse, version) for version in document["versions"]]
        versions = list(map(_store_version, document["versions"], namespaces))
        swapped = compare_and_swap(session, row, uri, {**document, "versions": versions}, now)
        if swapped:
            _replace_references(session, row, zip(versions, namespaces, strict=True))
    if not swapped:
        objects.delete(uri)
        raise ApiError(409, "CommitFailedException", f"The view `{name}` was changed concurrently.")
    row.metadata_location = uri
    return _load_result(opened, document)


def _replace_references(
    session: Session, view: TabularRow, versions: Iterable[tuple[Json, NamespaceRow | None]]
) -> None:
    session.execute(
        delete(DefaultNamespaceRow).where(
            DefaultNamespaceRow.warehouse_id == view.warehouse_id, DefaultNamespaceRow.view_id == view.id
        )
    )
    session.add_all(_refer(view, version, namespace) for version, namespace in versions if namespace)


@router.post("/views/rename")
def rename_view(
    call: Call, idempotency: Idempotency, body: Annotated[RenameRequest, read_body(RenameRequest)]
) -> Response:
    """Rename a view or move it to another namespace."""
    return idempotency.run(lambda: rename_tabular(call, "view", body))


@router.delete(VIEW)
def drop_view(
    call: Call,
    namespace: NamespacePath,
    view: str,
    idempotency: Idempotency,
    *,
    purge: Annotated[Flag | None, Query(alias="purgeRequested")] = None,
    force: Flag = False,
) -> Response:
    """Drop a view."""
    return idempotency.run(lambda: drop_tabular(call, namespace, view, "view", purge=purge, force=force))
