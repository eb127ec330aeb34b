"""Generic tables, which are not Iceberg (Lance, CSV): name, format and location. Engines write their data themselves.

They have an API root of their own. The server stores their definitions and rights, and vends no credentials.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import select
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.catalog.call import Call, Listing
from lakewright_sandbox.lakekeeper.catalog.locations import normalize_location, tabular_location
from lakewright_sandbox.lakekeeper.catalog.scope import NamespacePath
from lakewright_sandbox.lakekeeper.catalog.tabulars import (
    NewTabular,
    RenameRequest,
    check_new_name,
    drop_tabular,
    new_tabular,
    rename_tabular,
)
from lakewright_sandbox.lakekeeper.database.lookups import find_namespace, find_tabular, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import TabularRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Flag, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.paging import ListPage

KIND = "generic-table"
PATH = "/namespaces/{namespace}/generic-tables"
TABLE_PATH = f"{PATH}/{{generic_table}}"

router = APIRouter(prefix="/lakekeeper/v1/{prefix}")


class CreateGenericTable(Body):
    """Request to create a generic table."""

    name: str
    format: str
    base_location: str | None = None
    doc: str | None = None
    properties: dict[str, str] = Field(default_factory=dict)
    table_schema: Any = Field(default=None, alias="schema")
    statistics: Any = None


@router.post(PATH)
def create(
    call: Call, namespace: NamespacePath, body: Annotated[CreateGenericTable, read_body(CreateGenericTable)]
) -> Response:
    """Create a generic table."""
    with call.server.database.read() as session:
        opened = call.open(session)
        inside = opened.namespace(namespace)
        check_new_name(session, inside, body.name, "Table")
    row = new_tabular(KIND, inside, body.name, call.server.clock.now())
    profile = opened.storage.profile
    requested_location = normalize_location(profile, body.base_location) if body.base_location else None
    row.location = requested_location or tabular_location(profile, inside, body.name, row.id)
    row.metadata_location = row.location  # it has no metadata file; without a location it would count as staged
    row.document = json.dumps(body.model_dump(by_alias=True, exclude_none=True, exclude={"name", "base_location"}))
    NewTabular(call.server, row, None).insert()
    return _to_response(row)


@router.get(PATH)
def list_all(call: Call, namespace: NamespacePath, listing: Listing) -> Response:
    """List the generic tables of a namespace."""
    try:
        page = ListPage.from_request(call.server.settings, listing.page_token, listing.page_size, strict=True)
    except ApiError as error:
        message = f"Catalog backend error (Unexpected): {error.message}"
        raise ApiError(503, "CatalogBackendError", message) from None
    with call.server.database.read() as session:
        find_warehouse(session, call.warehouse_id, active=True)
        inside = find_namespace(session, call.warehouse_id, namespace)
        query = select(TabularRow).where(
            TabularRow.namespace_id == inside.id, TabularRow.kind == KIND, TabularRow.deleted_at.is_(None)
        )
        rows = session.scalars(page.select(query, TabularRow.created_at, TabularRow.id)).all()
        token = page.next_token(rows)
        visible_rows = call.server.authorizer.filter_visible(session, rows, Target.from_tabular)
    identifiers = [
        {"namespace": inside.path, "name": row.name, "format": json.loads(row.document)["format"], "id": row.id}
        for row in visible_rows
    ]
    return json_response({"identifiers": identifiers} | ({"next-page-token": token} if token else {}))


@router.get(TABLE_PATH)
def load(call: Call, namespace: NamespacePath, generic_table: str) -> Response:
    """Return a generic table."""
    with call.server.database.read() as session:
        find_warehouse(session, call.warehouse_id, active=True)
        row = find_tabular(session, find_namespace(session, call.warehouse_id, namespace), generic_table, KIND)
    return _to_response(row)


@router.post("/generic-tables/rename")
def rename(call: Call, body: Annotated[RenameRequest, read_body(RenameRequest)]) -> Response:
    """Rename a generic table or move it to another namespace."""
    return rename_tabular(call, KIND, body)


@router.delete(TABLE_PATH)
def drop(
    call: Call,
    namespace: NamespacePath,
    generic_table: str,
    *,
    purge: Annotated[Flag | None, Query(alias="purgeRequested")] = None,
    force: Flag = False,
) -> Response:
    """Drop a generic table."""
    return drop_tabular(call, namespace, generic_table, KIND, purge=purge, force=force)


def _to_response(row: TabularRow) -> Response:
    table = {"name": row.name, "base-location": row.location, **json.loads(row.document)}
    return json_response({"table": table, "protected": row.protected})
