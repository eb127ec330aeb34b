"""Operations of both tables and views: naming, insertion, listing, renaming, dropping."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.hierarchy import keep_parent
from lakewright_sandbox.lakekeeper.authz.store import Target, forget_tabulars
from lakewright_sandbox.lakekeeper.catalog.call import CatalogCall, ListOptions
from lakewright_sandbox.lakekeeper.catalog.locations import check_location_free
from lakewright_sandbox.lakekeeper.database.lookups import (
    find_namespace,
    find_tabular,
    find_tabular_by_name,
    find_warehouse,
)
from lakewright_sandbox.lakekeeper.database.models import DefaultNamespaceRow, NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, tabular_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import ListPage
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from lakewright_sandbox.lakekeeper.server.task_queue import schedule_purge, schedule_soft_deletion
from lakewright_sandbox.lakekeeper.storage.object_store import ObjectStore


class Identifier(Body):
    """A namespace and a name in it."""

    namespace: list[str]
    name: str


class RenameRequest(Body):
    """Request to rename or move a table or view."""

    source: Identifier
    destination: Identifier


def new_tabular(kind: str, namespace: NamespaceRow, name: str, now: int) -> TabularRow:
    """Return a row without location and document, which the caller sets."""
    return TabularRow(
        id=new_id(),
        warehouse_id=namespace.warehouse_id,
        namespace_id=namespace.id,
        kind=kind,
        name=name,
        name_key=name.casefold(),
        location="",
        metadata_location=None,
        document="{}",
        protected=False,
        created_at=now,
        updated_at=None,
        deleted_at=None,
        expires_at=None,
    )


def check_new_name(session: Session, namespace: NamespaceRow, name: str, noun: str) -> None:
    """Raise 400 for an invalid name, 409 for the name of a table or view that is not staged."""
    if not name or "+" in name:
        reason = "cannot contain '+' character." if name else "cannot be empty."
        raise ApiError(400, f"Invalid{noun}Name", f"{noun} name {reason}")
    existing = find_tabular_by_name(session, namespace, name)
    if existing is not None and existing.metadata_location is not None:
        raise name_taken()


def name_taken(during: str = "creating tabular") -> ApiError:
    """Return the 409 of a name that another table or view has."""
    message = "Tabular with the same name already exists in the namespace"
    return ApiError(409, "AlreadyExistsException", message, f"Error {during} in catalog")


def compare_and_swap(
    session: Session, old: TabularRow, metadata_location: str, document: dict[str, Any], now: int
) -> bool:
    """Replace the metadata in `old` by new metadata. Return False if the row has other metadata by now."""
    swap = (
        update(TabularRow)
        .where(
            TabularRow.warehouse_id == old.warehouse_id,
            TabularRow.id == old.id,
            TabularRow.deleted_at.is_(None),
            TabularRow.metadata_location.is_not_distinct_from(old.metadata_location),
        )
        .values(
            metadata_location=metadata_location,
            document=json.dumps(document, separators=(",", ":")),
            location=document["location"],
            updated_at=now,
        )
        .returning(TabularRow.id)
    )
    return session.scalars(swap).first() is not None


@dataclass(frozen=True)
class NewTabular:
    """A row to insert. `objects` wrote its metadata file, and deletes it if the row is refused."""

    server: Lakekeeper
    row: TabularRow
    objects: ObjectStore | None
    overwrite: bool = False
    default_namespaces: Sequence[DefaultNamespaceRow] = ()
    """Default namespaces of a view's versions."""

    def insert(self) -> None:
        """Insert the row; it replaces a staged table of the same name, with `overwrite` any table."""
        try:
            with self.server.database.write() as session:
                self._insert(session)
        except (ApiError, IntegrityError) as error:
            if self.objects is not None and self.row.metadata_location is not None:
                self.objects.delete(self.row.metadata_location)
            raise (name_taken() if isinstance(error, IntegrityError) else error) from None

    def _insert(self, session: Session) -> None:
        row = self.row
        find_warehouse(session, row.warehouse_id, active=True)
        namespace = session.get(NamespaceRow, row.namespace_id)
        if namespace is None:
            raise ApiError(409, "ConcurrentUpdateError", "The namespace was dropped meanwhile.")
        existing = find_tabular_by_name(session, namespace, row.name)
        if existing is not None and (existing.metadata_location is None or self.overwrite):
            check_unprotected(existing)
            forget_tabulars(session, [existing])
            session.delete(existing)
            session.flush()
        check_location_free(session, row, row.location)
        session.add(row)
        session.add_all(self.default_namespaces)
        session.flush()
        self.server.authorizer.add_owner(session, Target.from_tabular(row))


def list_tabulars(call: CatalogCall, path: Sequence[str], kind: str, listing: ListOptions) -> Response:
    """List the tables or views of a namespace."""
    page = ListPage.from_request(call.server.settings, listing.page_token, listing.page_size, whole=True)
    with call.server.database.read() as session:
        find_warehouse(session, call.warehouse_id, active=True)
        namespace = find_namespace(session, call.warehouse_id, path)
        query = select(TabularRow).where(
            TabularRow.namespace_id == namespace.id,
            TabularRow.kind == kind,
            TabularRow.deleted_at.is_(None),
            TabularRow.metadata_location.is_not(None),
        )
        rows = session.scalars(page.select(query, TabularRow.created_at, TabularRow.id)).all()
        token = page.next_token(rows)
        rows = call.server.authorizer.filter_visible(session, rows, Target.from_tabular)
    body: dict[str, Any] = {"identifiers": [{"namespace": namespace.path, "name": row.name} for row in rows]}
    if token:
        body["next-page-token"] = token
    if listing.uuids:
        body["table-uuids"] = [row.id for row in rows]
    if listing.protection:
        body["protection-status"] = [row.protected for row in rows]
    return json_response(body)


def rename_tabular(call: CatalogCall, kind: str, body: RenameRequest) -> Response:
    """Rename a table or view, or move it to another namespace."""
    source, destination = body.source, body.destination
    try:
        with call.server.database.write() as session:
            find_warehouse(session, call.warehouse_id, active=True)
            namespace = find_namespace(session, call.warehouse_id, source.namespace)
            row = find_tabular(session, namespace, source.name, kind)
            target = find_namespace(session, call.warehouse_id, destination.namespace)
            holders = _list_name_holders(session, target, destination.name)
            # Before 0.13, a table or view is in the way of a change of its case.
            if call.server.settings.is_at_least("0.13"):
                holders -= {row.id}
            if holders and not call.server.settings.is_at_least("0.14"):
                raise tabular_missing(kind)
            existing = find_tabular_by_name(session, target, destination.name)
            if existing is None or existing.id != row.id:
                check_new_name(session, target, destination.name, kind.capitalize())
            if target.id != namespace.id and call.server.authorizer.enforces:
                keep_parent(session, row)
            row.namespace_id, row.name, row.name_key = target.id, destination.name, destination.name.casefold()
            row.updated_at = call.server.clock.now()
    except IntegrityError:
        raise name_taken("renaming tabular") from None
    return empty()


def _list_name_holders(session: Session, namespace: NamespaceRow, name: str) -> set[str]:
    """Return the ids of tables and views that have a name, or had it when they were dropped."""
    query = select(TabularRow.id).where(TabularRow.namespace_id == namespace.id, TabularRow.name_key == name.casefold())
    return {*session.scalars(query)}


def check_unprotected(row: TabularRow) -> None:
    """Raise 409 if a table or view is protected; a registration that overwrites it drops it first, without force."""
    if row.protected:
        message = f"Cannot delete protected tabular {row.kind.capitalize()} ID '{row.id}' without force flag"
        raise ApiError(409, "ProtectedTabularDeletionWithoutForce", message, "Error dropping tabular in catalog")


def drop_tabular(
    call: CatalogCall, path: Sequence[str], name: str, kind: str, *, purge: bool | None, force: bool
) -> Response:
    """Drop a table or view: softly if the warehouse does so, unless `force`. Its files go unless `purge` is False."""
    now = call.server.clock.now()
    with call.server.database.write() as session:
        warehouse = find_warehouse(session, call.warehouse_id, active=True)
        row = find_tabular(session, find_namespace(session, call.warehouse_id, path), name, kind)
        if not force:
            check_unprotected(row)
        if warehouse.delete_profile["type"] == "soft" and not force:
            due = now + warehouse.delete_profile["expiration-seconds"] * 1_000_000
            row.deleted_at, row.expires_at = now, due
            schedule_soft_deletion(call.server, session, warehouse, row, due=due, purge=purge is not False)
        else:
            if purge is not False:
                delay = call.server.settings.unasked_purge_delay_seconds if purge is None else 0
                schedule_purge(call.server, session, warehouse, row, delay_seconds=delay)
            forget_tabulars(session, [row])
            session.delete(row)
    return empty()
