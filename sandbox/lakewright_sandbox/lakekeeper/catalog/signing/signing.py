"""Remote signing: signs a client's S3 request with the server's own identity, within the table's location only."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Annotated
from urllib.parse import quote, unquote, urlsplit
from uuid import UUID

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from ...authz.store import Target
from ...database.lookups import find_warehouse
from ...database.models import TabularRow, WarehouseRow
from ...protocol.errors import ApiError
from ...protocol.requests import read_body
from ...protocol.responses import json_response
from ...server.server import Lakekeeper, Server
from .signed_requests import SignRequest, copied, requested

# Signed anew, or made by whatever carries the request on.
DROPPED_HEADERS = ("authorization", "x-amz-date", "x-amz-security-token", "amz-sdk-invocation-id", "amz-sdk-request")

CONTENT_SHA256 = "X-Amz-Content-SHA256"

router = APIRouter(prefix="/catalog/v1")


class _RemoteSigV4(S3SigV4Auth):
    """Signs a body that was sent along, and so was checked, as it is; for one not seen the client's own hash counts."""

    def payload(self, request: AWSRequest) -> str:
        return request.context["payload_sha256"]

    def canonical_query_string(self, request: AWSRequest) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As S3 reads it: decoded and encoded anew, so that a bare slash counts as an encoded one."""
        pairs = (pair.partition("=") for pair in urlsplit(str(request.url)).query.split("&") if pair)
        encoded = sorted((_encoded(str(name)), _encoded(str(value))) for name, _, value in pairs)
        return "&".join(f"{name}={value}" for name, value in encoded)

    def _modify_request_before_signing(self, request: AWSRequest) -> None:
        known = hashlib.sha256(request.data).hexdigest() if request.data else None
        given = request.headers.get(CONTENT_SHA256)
        request.context["payload_sha256"] = known or given or "UNSIGNED-PAYLOAD"
        super()._modify_request_before_signing(request)


def _encoded(text: str) -> str:
    return quote(unquote(text), safe="-_.~")


@router.post("/signer/{warehouse_id}/tabular-id/{tabular_id}/v1/aws/s3/sign")
def sign_for_table(
    server: Server, warehouse_id: UUID, tabular_id: UUID, body: Annotated[SignRequest, read_body(SignRequest)]
) -> Response:
    return _signed(server, str(warehouse_id), str(tabular_id), body)


@router.post("/aws/s3/sign")
def sign_without_warehouse() -> Response:
    message = "No prefix specified. The warehouse-id must be provided as prefix in the URL."
    raise ApiError(400, "NoPrefixProvided", message)


@router.post("/{warehouse_id}/v1/aws/s3/sign")
@router.post("/signer/{warehouse_id}/v1/aws/s3/sign")
def sign_in_warehouse(
    server: Server, warehouse_id: UUID, body: Annotated[SignRequest, read_body(SignRequest)]
) -> Response:
    """Sign for clients that lost the table's id: the table is found by its location."""
    return _signed(server, str(warehouse_id), None, body)


def _check_right(server: Lakekeeper, session: Session, tabular: TabularRow, body: SignRequest) -> None:
    """To read for what only reads, to write for the rest."""
    read = "read_data" if tabular.kind == "table" else "select"
    write = "write_data" if tabular.kind == "table" else "commit"
    action = read if body.method.upper() in ("GET", "HEAD") else write
    server.authorizer.require(session, Target(tabular.kind, tabular.id), action)


def _signable(
    server: Lakekeeper, session: Session, warehouse: WarehouseRow, tabular_id: str | None, uris: list[str]
) -> TabularRow:
    """Return the table that the path names or, where its location does not hold the URIs, that the first URI is in.

    PyIceberg up to 0.9.1 asks for one table's files with the other's id.
    """
    kinds = ("table", "generic-table") if server.settings.since("0.14") else ("table",)
    named = session.get(TabularRow, tabular_id) if tabular_id else None
    if (
        named
        and (named.warehouse_id, named.deleted_at) == (warehouse.id, None)
        and named.kind in kinds
        and all(_is_in(uri, named) for uri in uris)
    ):
        return named
    parts = uris[0].split("/")
    above = ["/".join(parts[:end]) for end in range(3, len(parts) + 1)]
    # Soft-deleted ones too: Spark drops a table, and looks for its files then.
    query = select(TabularRow).where(
        TabularRow.warehouse_id == warehouse.id, TabularRow.location.in_(above), TabularRow.kind.in_(kinds)
    )
    found = session.scalars(query).first()
    if found is None:
        kind = "NoSuchTableLocationException" if server.settings.since("0.12") else "TableNotFoundByLocation"
        raise ApiError(
            400, kind, f"Table does not exist or user does not have permission to view it at location `{uris[0]}`"
        )
    return found


def _is_in(uri: str, tabular: TabularRow) -> bool:
    return uri.startswith(f"s3://{tabular.location.partition('://')[2]}/")


def _signed(server: Lakekeeper, warehouse_id: str, tabular_id: str | None, request: SignRequest) -> Response:
    with server.database.read() as session:
        warehouse = find_warehouse(session, warehouse_id, active=True)
        storage = server.storage_of(session, warehouse)
        if not storage.profile.remote_signing_enabled:
            raise ApiError(403, "RemoteSigningDisabled", "Remote signing is disabled for this warehouse.")
        uris = requested(storage, request, listings=server.settings.since("0.14"))
        tabular = _signable(server, session, warehouse, tabular_id, uris)
        _check_right(server, session, tabular, request)
    if request.region != storage.profile.region:
        raise ApiError(400, "RegionMismatch", "Region does not match storage profile")
    for uri in uris:
        if not _is_in(uri, tabular):
            message = f"Expected location {tabular.location} but request signing for {uri}."
            raise ApiError(400, "RequestUriMismatch", message)
    for source in copied(request):  # real servers do not look at it
        if not _is_in(posixpath.normpath(source).replace("s3:/", "s3://", 1), tabular):
            message = f"Cannot sign a copy from `{source}`: it is outside of the table's location `{tabular.location}`."
            raise ApiError(403, "SignRequestOutsideLocation", message)
    keys = server.access.own_keys(storage)
    if keys is None:
        raise ApiError(400, "Misconfiguration", "The warehouse has no credential to sign with.")
    headers = {name: values[0] for name, values in request.headers.items() if name.lower() not in DROPPED_HEADERS}
    body = request.body.encode() if request.body is not None else None
    signed = AWSRequest(method=request.method, url=request.uri, headers=headers, data=body)
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    _RemoteSigV4(credentials, "s3", storage.profile.region).add_auth(signed)
    answer = {name: [value] for name, value in signed.headers.items()}
    # Clients keep answers that are `private`, by method and URI alone: not those that depend on a body.
    caching = "private" if request.method.upper() in ("GET", "HEAD") else "no-store"
    return json_response({"uri": request.uri, "headers": answer}, headers={"cache-control": caching})
