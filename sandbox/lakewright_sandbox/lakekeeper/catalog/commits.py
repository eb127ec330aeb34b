"""Commits to tables, one or several in a transaction: all take effect, or none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.catalog.call import Call, CatalogCall, OpenTabular
from lakewright_sandbox.lakekeeper.catalog.commit_shapes import TableRequirement, TableUpdate
from lakewright_sandbox.lakekeeper.catalog.idempotency import Idempotency
from lakewright_sandbox.lakekeeper.catalog.metadata.requirements import check_requirements
from lakewright_sandbox.lakekeeper.catalog.metadata.table_builder import TableBuilder
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import (
    empty_metadata,
    encode_metadata,
    file_version,
    metadata_file,
    to_stored_form,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.table_properties import (
    CODEC,
    PREVIOUS_VERSIONS_MAX,
    check_codec,
    check_supported_updates,
    deletes_after_commit,
)
from lakewright_sandbox.lakekeeper.catalog.metadata.table_updates import apply_updates
from lakewright_sandbox.lakekeeper.catalog.scope import NamespacePath
from lakewright_sandbox.lakekeeper.catalog.tabulars import Identifier, compare_and_swap
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, tabular_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response

Json = dict[str, Any]

MAX_ATTEMPTS = 5
DEFAULT_METADATA_LOG = 100

router = APIRouter(prefix="/catalog/v1/{prefix}")


class CommitTable(Body):
    """Changes of one table, with the requirements for them."""

    identifier: Identifier | None = None
    requirements: list[TableRequirement]
    updates: list[TableUpdate]


class CommitTransaction(Body):
    """Changes of several tables."""

    table_changes: list[CommitTable]


@dataclass(frozen=True)
class PreparedCommit:
    """A commit that is written to storage but not yet to the database."""

    tabular: OpenTabular
    document: Json
    metadata_location: str
    expired_files: list[str]


class ChangedMeanwhileError(SandboxError):
    """Another commit was faster; the requirements decide whether this commit may be retried."""


@router.post("/namespaces/{namespace}/tables/{table}")
def commit_table(
    call: Call,
    namespace: NamespacePath,
    table: str,
    idempotency: Idempotency,
    body: Annotated[CommitTable, read_body(CommitTable)],
) -> Response:
    """Commit changes to one table."""
    identifier = Identifier(namespace=list(namespace), name=table)
    change = body.model_copy(update={"identifier": identifier})

    def commit() -> Response:
        done = _commit(call, [change])[0]
        return _commit_result(call, done.metadata_location, done.document)

    def reload() -> Response:
        with call.server.database.read() as session:
            row = call.open(session).find(namespace, table, "table").tabular
        return _commit_result(call, row.metadata_location, json.loads(row.document))

    return idempotency.run(commit, reload)


def _commit_result(call: CatalogCall, location: str | None, document: Json) -> Response:
    body = {"metadata-location": location, "metadata": document, "config": None}
    return json_response(body, headers={"etag": call.etags.build_for_commit(location)} if location else None)


@router.post("/transactions/commit")
def commit_transaction(
    call: Call, idempotency: Idempotency, body: Annotated[CommitTransaction, read_body(CommitTransaction)]
) -> Response:
    """Respond with 200 without a body; Iceberg's specification says 204."""
    for change in body.table_changes:
        if change.identifier is None:
            raise ApiError(400, "TableIdentifierRequiredForCommitTransaction", "Every table change needs `identifier`.")

    def commit() -> Response:
        _commit(call, body.table_changes)
        return empty(200)

    return idempotency.run(commit)


def _commit(call: CatalogCall, changes: list[CommitTable]) -> list[PreparedCommit]:
    """Write new metadata files, then swap all locations at once; retry if another commit was faster."""
    for change in changes:
        check_supported_updates(change.updates)
    for _ in range(MAX_ATTEMPTS):
        prepared: list[PreparedCommit] = []
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
        for commit in prepared:
            for uri in commit.expired_files:
                call.objects(commit.tabular.storage).delete(uri)
        return prepared
    names = ", ".join(change.identifier.name for change in changes if change.identifier)
    raise ApiError(409, "CommitFailedException", f"Too many concurrent commits to {names}, try again.")


def _prepare(call: CatalogCall, change: CommitTable, before: list[PreparedCommit]) -> PreparedCommit:
    assert change.identifier is not None
    creates = any(requirement.get("type") == "assert-create" for requirement in change.requirements)
    with call.server.database.read() as session:
        opened = call.open(session)
        tabular = opened.find(change.identifier.namespace, change.identifier.name, "table", staged=creates)
    if any(other.tabular.tabular.id == tabular.tabular.id for other in before):
        message = f"Table `{tabular.tabular.name}` appears more than once in the transaction."
        raise ApiError(400, "InvalidTransaction", message)
    staged = tabular.tabular.metadata_location is None
    current = None if staged else json.loads(tabular.tabular.document)
    check_requirements(change.requirements, current)
    return _write(tabular, _build(tabular, current, change.updates))


def _build(tabular: OpenTabular, current: Json | None, updates: list[Json]) -> Json:
    now = tabular.call.server.clock.now() // 1000
    row, warehouse = tabular.tabular, tabular.warehouse
    if current is None:
        version = max((update["format-version"] for update in updates if "format-version" in update), default=0)
        version = version or json.loads(row.document)["format-version"]
        current = empty_metadata(row.id, row.location, version, now)
    fixed_properties = tabular.call.server.settings.is_at_least("0.12")
    builder = TableBuilder(current, warehouse.allowed_format_versions, now, fixed_properties=fixed_properties)
    return apply_updates(builder, updates)


def _write(tabular: OpenTabular, document: Json) -> PreparedCommit:
    row, properties = tabular.tabular, document["properties"]
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
    form = to_stored_form(document)
    uri = metadata_file(document["location"], version, properties.get(CODEC))
    tabular.call.objects(tabular.storage).write(uri, encode_metadata(form, uri))
    return PreparedCommit(tabular, form, uri, expired)


def _swap(call: CatalogCall, prepared: list[PreparedCommit]) -> None:
    """Compare and swap the metadata locations. Raises `ChangedMeanwhileError` if a location has changed."""
    now = call.server.clock.now()
    with call.server.database.write() as session:
        for commit in prepared:
            _swap_one(session, commit, now)


def _swap_one(session: Session, commit: PreparedCommit, now: int) -> None:
    row = commit.tabular.tabular
    if compare_and_swap(session, row, commit.metadata_location, commit.document, now):
        return
    if find_tabular_by_id(session, row.warehouse_id, row.id) is None:
        raise tabular_missing("table")
    raise ChangedMeanwhileError


def _discard(call: CatalogCall, prepared: list[PreparedCommit]) -> None:
    for commit in prepared:
        call.objects(commit.tabular.storage).delete(commit.metadata_location)
