"""Commits to tables, one at a time or several in one transaction: all of them take effect, or none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.responses import Response

from ..database.models import TabularRow
from ..protocol.errors import ApiError, tabular_missing
from ..protocol.requests import Body, read_body
from ..protocol.responses import empty, json_response
from .call import Call, CatalogCall, Found
from .commit_shapes import TableRequirement, TableUpdate
from .idempotency import Idempotency
from .metadata.requirements import check_requirements
from .metadata.table_builder import TableBuilder
from .metadata.table_metadata import empty_metadata, encoded, file_version, metadata_file, stored_form
from .metadata.table_properties import (
    CODEC,
    PREVIOUS_VERSIONS_MAX,
    check_codec,
    check_supported_updates,
    deletes_after_commit,
)
from .metadata.table_updates import apply_updates
from .scope import NamespacePath
from .tabulars import Identifier, swapped

Json = dict[str, Any]

MAX_ATTEMPTS = 5
DEFAULT_METADATA_LOG = 100

router = APIRouter(prefix="/catalog/v1/{prefix}")


class CommitTable(Body):
    identifier: Identifier | None = None
    requirements: list[TableRequirement]
    updates: list[TableUpdate]


class CommitTransaction(Body):
    table_changes: list[CommitTable]


@dataclass(frozen=True)
class Prepared:
    """A commit that is written to storage but not in the database yet."""

    found: Found
    document: Json
    metadata_location: str
    expired_files: list[str]


class ChangedMeanwhileError(Exception):
    """Another commit was faster; the requirements decide whether this one may try again."""


@router.post("/namespaces/{namespace}/tables/{table}")
def commit_table(
    call: Call,
    namespace: NamespacePath,
    table: str,
    idempotency: Idempotency,
    body: Annotated[CommitTable, read_body(CommitTable)],
) -> Response:
    identifier = Identifier(namespace=list(namespace), name=table)
    change = body.model_copy(update={"identifier": identifier})

    def commit() -> Response:
        done = _commit(call, [change])[0]
        return _commit_result(done.metadata_location, done.document)

    def again() -> Response:
        with call.server.database.read() as session:
            row = call.open(session).find(namespace, table, "table").tabular
        return _commit_result(row.metadata_location, json.loads(row.document))

    return idempotency.run(commit, again)


def _commit_result(location: str | None, document: Json) -> Response:
    return json_response({"metadata-location": location, "metadata": document, "config": None})


@router.post("/transactions/commit")
def commit_transaction(
    call: Call, idempotency: Idempotency, body: Annotated[CommitTransaction, read_body(CommitTransaction)]
) -> Response:
    """Answer 200 without a body; Iceberg's specification says 204."""
    for change in body.table_changes:
        if change.identifier is None:
            raise ApiError(400, "TableIdentifierRequiredForCommitTransaction", "Every table change needs `identifier`.")

    def commit() -> Response:
        _commit(call, body.table_changes)
        return empty(200)

    return idempotency.run(commit)


def _commit(call: CatalogCall, changes: list[CommitTable]) -> list[Prepared]:
    """Writes the new metadata files, then swaps all locations at once; tries again where another was faster."""
    for change in changes:
        check_supported_updates(change.updates)
    for _ in range(MAX_ATTEMPTS):
        prepared: list[Prepared] = []
        try:
            for change in changes:
                prepared.append(_prepare(call, change, prepared))
            _swap(call, prepared)
        except ChangedMeanwhileError:
            _discard(call, prepared)
            continue
        except (ApiError, IntegrityError) as error:
            _discard(call, prepared)
            if isinstance(error, IntegrityError):
                raise ApiError(409, "ConcurrentUpdateError", "The table was changed concurrently.") from None
            raise
        for one in prepared:
            for uri in one.expired_files:
                call.objects(one.found.storage).delete(uri)
        return prepared
    names = ", ".join(change.identifier.name for change in changes if change.identifier)
    raise ApiError(409, "CommitFailedException", f"Too many concurrent commits to {names}, try again.")


def _prepare(call: CatalogCall, change: CommitTable, before: list[Prepared]) -> Prepared:
    assert change.identifier is not None
    creates = any(one.get("type") == "assert-create" for one in change.requirements)
    with call.server.database.read() as session:
        opened = call.open(session)
        found = opened.find(change.identifier.namespace, change.identifier.name, "table", staged=creates)
    if any(one.found.tabular.id == found.tabular.id for one in before):
        message = f"Table `{found.tabular.name}` appears more than once in the transaction."
        raise ApiError(400, "InvalidTransaction", message)
    staged = found.tabular.metadata_location is None
    current = None if staged else json.loads(found.tabular.document)
    check_requirements(change.requirements, current)
    return _write(found, _built(found, current, change.updates))


def _built(found: Found, current: Json | None, updates: list[Json]) -> Json:
    now = found.call.server.clock.now() // 1000
    row, warehouse = found.tabular, found.warehouse
    if current is None:
        version = max((one["format-version"] for one in updates if "format-version" in one), default=0)
        version = version or json.loads(row.document)["format-version"]
        current = empty_metadata(row.id, row.location, version, now)
    fixed_properties = found.call.server.settings.since("0.12")
    builder = TableBuilder(current, warehouse.allowed_format_versions, now, fixed_properties=fixed_properties)
    return apply_updates(builder, updates)


def _write(found: Found, document: Json) -> Prepared:
    row, properties = found.tabular, document["properties"]
    check_codec(properties)
    expired: list[str] = []
    version = 0
    if row.metadata_location is not None:
        log = document["metadata-log"]
        previous = json.loads(row.document)["last-updated-ms"]
        log.append({"metadata-file": row.metadata_location, "timestamp-ms": previous})
        keep = max(1, int(properties.get(PREVIOUS_VERSIONS_MAX, DEFAULT_METADATA_LOG)))
        document["metadata-log"] = log[-keep:]
        if deletes_after_commit(properties):
            expired = [entry["metadata-file"] for entry in log[:-keep]]
        version = file_version(row.metadata_location) + 1
    form = stored_form(document)
    uri = metadata_file(document["location"], version, properties.get(CODEC))
    found.call.objects(found.storage).write(uri, encoded(form, uri))
    return Prepared(found, form, uri, expired)


def _swap(call: CatalogCall, prepared: list[Prepared]) -> None:
    """Compare and swap of the metadata locations. Raises `ChangedMeanwhileError` where one is not the old one."""
    now = call.server.clock.now()
    with call.server.database.write() as session:
        for one in prepared:
            _swap_one(session, one, now)


def _swap_one(session: Session, one: Prepared, now: int) -> None:
    row = one.found.tabular
    if swapped(session, row, one.metadata_location, one.document, now):
        return
    if session.get(TabularRow, row.id) is None:
        raise tabular_missing("table")
    raise ChangedMeanwhileError


def _discard(call: CatalogCall, prepared: list[Prepared]) -> None:
    for one in prepared:
        call.objects(one.found.storage).delete(one.metadata_location)
