"""Sign a client's S3 request with the server's own identity, within the table's location only."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Annotated, Any, cast
from urllib.parse import quote, unquote, urlsplit
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.catalog.signing.signed_requests import SignRequest, copy_sources, list_uris
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import TabularRow, WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server
from lakewright_sandbox.lakekeeper.storage.access import WarehouseStorage
from lakewright_sandbox.typed.boto import AWSRequest, Credentials, S3SigV4Auth

# Headers that signing or the client's transport creates.
DROPPED_HEADERS = ("authorization", "x-amz-date", "x-amz-security-token", "amz-sdk-invocation-id", "amz-sdk-request")

CONTENT_SHA256 = "X-Amz-Content-SHA256"

router = APIRouter(prefix="/catalog/v1")


class _RemoteSigV4(S3SigV4Auth):
    """Sign a body that was sent along, since it was checked; otherwise use the client's own hash of the body."""

    def payload(self, request: Any) -> str:
        """Return the hash of the body."""
        return request.context["payload_sha256"]

    def canonical_query_string(self, request: Any) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the query as S3 canonicalizes it: decoded and encoded again, so that slashes are encoded."""
        pairs = (pair.partition("=") for pair in urlsplit(str(request.url)).query.split("&") if pair)
        encoded = sorted((_encode(str(name)), _encode(str(value))) for name, _, value in pairs)
        return "&".join(f"{name}={value}" for name, value in encoded)

    def _modify_request_before_signing(self, request: Any) -> None:
        body_hash = hashlib.sha256(request.data).hexdigest() if request.data else None
        header_hash = request.headers.get(CONTENT_SHA256)
        request.context["payload_sha256"] = body_hash or header_hash or "UNSIGNED-PAYLOAD"
        cast("Any", super())._modify_request_before_signing(request)


def _encode(text: str) -> str:
    return quote(unquote(text), safe="-_.~")


@router.post("/signer/{warehouse_id}/tabular-id/{tabular_id}/v1/aws/s3/sign")
def sign_for_table(
    server: Server, warehouse_id: UUID, tabular_id: UUID, body: Annotated[SignRequest, read_body(SignRequest)]
) -> Response:
    """Sign a request for a table that is named by id."""
    return _sign(server, str(warehouse_id), str(tabular_id), body)


@router.post("/aws/s3/sign")
def sign_without_warehouse() -> Response:
    """Refuse to sign without a warehouse."""
    message = "No prefix specified. The warehouse-id must be provided as prefix in the URL."
    raise ApiError(400, "NoPrefixProvided", message)


@router.post("/{warehouse_id}/v1/aws/s3/sign")
@router.post("/signer/{warehouse_id}/v1/aws/s3/sign")
def sign_in_warehouse(
    server: Server, warehouse_id: UUID, body: Annotated[SignRequest, read_body(SignRequest)]
) -> Response:
    """Sign a request without the table's id; its location identifies the table."""
    return _sign(server, str(warehouse_id), None, body)


def _check_right(server: Lakekeeper, session: Session, tabular: TabularRow, body: SignRequest) -> None:
    """Require the right to read for requests that only read, the right to write for others."""
    read = "read_data" if tabular.kind == "table" else "select"
    write = "write_data" if tabular.kind == "table" else "commit"
    action = read if body.method.upper() in ("GET", "HEAD") else write
    server.authorizer.require(session, Target.from_tabular(tabular), action)


def _find_tabular(
    server: Lakekeeper, session: Session, warehouse: WarehouseRow, tabular_id: str | None, uris: list[str]
) -> TabularRow:
    """Return the tabular that the path names; if it does not contain the first URI, return the tabular that does.

    PyIceberg up to 0.9.1 requests one table's files with another's id.
    """
    kinds = ("table", "generic-table") if server.settings.is_at_least("0.14") else ("table",)
    named_tabular = find_tabular_by_id(session, warehouse.id, tabular_id) if tabular_id else None
    if (
        named_tabular
        and named_tabular.deleted_at is None
        and named_tabular.kind in kinds
        and all(_contains_uri(uri, named_tabular) for uri in uris)
    ):
        return named_tabular
    parts = uris[0].split("/")
    above = ["/".join(parts[:end]) for end in range(3, len(parts) + 1)]
    # Soft-deleted tables too: Spark drops a table and then accesses its files.
    query = select(TabularRow).where(
        TabularRow.warehouse_id == warehouse.id, TabularRow.location.in_(above), TabularRow.kind.in_(kinds)
    )
    tabular = session.scalars(query).first()
    if tabular is None:
        kind = "NoSuchTableLocationException" if server.settings.is_at_least("0.12") else "TableNotFoundByLocation"
        raise ApiError(
            400, kind, f"Table does not exist or user does not have permission to view it at location `{uris[0]}`"
        )
    return tabular


def _contains_uri(uri: str, tabular: TabularRow) -> bool:
    return uri.startswith(f"s3://{tabular.location.partition('://')[2]}/")


def _sign(server: Lakekeeper, warehouse_id: str, tabular_id: str | None, request: SignRequest) -> Response:
    with server.database.read() as session:
        warehouse = find_warehouse(session, warehouse_id, active=True)
        storage = server.open_storage(session, warehouse)
        if not isinstance(storage, WarehouseStorage) or not storage.signs_requests:
            raise ApiError(403, "RemoteSigningDisabled", "Remote signing is disabled for this warehouse.")
        uris = list_uris(storage, request, listings=server.settings.is_at_least("0.14"))
        tabular = _find_tabular(server, session, warehouse, tabular_id, uris)
        _check_right(server, session, tabular, request)
    if request.region != storage.profile.region:
        raise ApiError(400, "RegionMismatch", "Region does not match storage profile")
    for uri in uris:
        if not _contains_uri(uri, tabular):
            message = f"Expected location {tabular.location} but request signing for {uri}."
            raise ApiError(400, "RequestUriMismatch", message)
    for source in copy_sources(request):  # real servers do not check it
        if not _contains_uri(posixpath.normpath(source).replace("s3:/", "s3://", 1), tabular):
            message = f"Cannot sign a copy from `{source}`: it is outside of the table's location `{tabular.location}`."
            raise ApiError(403, "SignRequestOutsideLocation", message)
    keys = server.access.own_keys(storage)
    if keys is None:
        raise ApiError(400, "Misconfiguration", "The warehouse has no credential to sign with.")
    headers = {name: values[0] for name, values in request.headers.items() if name.lower() not in DROPPED_HEADERS}
    body = request.body.encode() if request.body is not None else None
    signed = AWSRequest(method=request.method, url=request.uri, headers=headers, data=body)
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    signer: Any = _RemoteSigV4(credentials, "s3", storage.profile.region)
    signer.add_auth(signed)
    signed_headers = {name: [value] for name, value in signed.headers.items()}
    # Clients cache `private` responses by method and URI alone, so responses that depend on a body must not be cached.
    caching = "private" if request.method.upper() in ("GET", "HEAD") else "no-store"
    return json_response({"uri": request.uri, "headers": signed_headers}, headers={"cache-control": caching})
