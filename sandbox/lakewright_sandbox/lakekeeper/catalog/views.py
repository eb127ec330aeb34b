"""Views: create, list, load, exist, replace, rename, drop."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.catalog.call import Call, CatalogCall, Listing, OpenTabular, OpenWarehouse
from lakewright_sandbox.lakekeeper.catalog.commit_shapes import ViewRequirement, ViewUpdate
from lakewright_sandbox.lakekeeper.catalog.idempotency import Idempotency
from lakewright_sandbox.lakekeeper.catalog.locations import normalize_location, tabular_location
from lakewright_sandbox.lakekeeper.catalog.metadata.fresh_ids import check_schema
from lakewright_sandbox.lakekeeper.catalog.metadata.requirements import check_requirements
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import encode_metadata, file_version, metadata_file
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
    with call.server.database.read() as session:
        opened = call.open(session)
        namespace = opened.namespace(path)
        check_new_name(session, namespace, body.name, "View")
        version = _forget_missing_namespace(opened, body.view_version)
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
    stored = {**document, "versions": [{**document["versions"][0], "default-namespace": version["default-namespace"]}]}
    view.document = json.dumps(stored, separators=(",", ":"))
    uri = metadata_file(view.location, 0, None, view.id)
    view.metadata_location = uri
    objects = call.objects(opened.storage)
    objects.write(uri, encode_metadata(document, uri))
    NewTabular(call.server, view, objects, check_location=bool(body.location)).insert()
    return _load_result(opened.open_created(namespace, view), document)


def _forget_missing_namespace(warehouse: OpenWarehouse, version: Json) -> Json:
    """Return a version as the database has it: with the ID of its default namespace, or none without the namespace.

    The response to the request, and the metadata file, have the name. Source: `batch_insert_view_versions` and
    `get_default_namespace_ident` of Lakekeeper.
    """
    path: list[str] = version.get("default-namespace") or []
    try:
        if path:
            warehouse.namespace(path)
    except ApiError:
        path = []
    return {**version, "default-namespace": path}


@router.get(VIEW)
def load_view(call: Call, namespace: NamespacePath, view: str) -> Response:
    """Return a view with its metadata."""
    with call.server.database.read() as session:
        opened = call.open(session).find(namespace, view, "view")
    return _load_result(opened, json.loads(opened.tabular.document))


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
    now = call.server.clock.now()
    with call.server.database.read() as session:
        opened = call.open(session).find(path, name, "view")
    row, current = opened.tabular, json.loads(opened.tabular.document)
    old_location = row.metadata_location or ""
    check_requirements(body.requirements or [], current)
    document = ViewBuilder(current, now // 1000).apply(body.updates)
    if document["location"] != row.location:
        document["location"] = normalize_location(opened.storage.profile, document["location"])
    uri = metadata_file(document["location"], file_version(old_location) + 1, None)
    objects = call.objects(opened.storage)
    objects.write(uri, encode_metadata(document, uri))
    earlier_versions = {version["version-id"]: version for version in current["versions"]}
    with call.server.database.write() as session:
        warehouse = call.open(session)
        versions = [
            earlier_versions.get(version["version-id"]) or _forget_missing_namespace(warehouse, version)
            for version in document["versions"]
        ]
        swapped = compare_and_swap(session, row, uri, {**document, "versions": versions}, now)
    if not swapped:
        objects.delete(uri)
        raise ApiError(409, "CommitFailedException", f"The view `{name}` was changed concurrently.")
    row.metadata_location = uri
    return _load_result(opened, document)


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
