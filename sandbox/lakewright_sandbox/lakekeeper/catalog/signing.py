"""Remote signing: signs a client's S3 request with the server's own identity, within the table's location only."""

from __future__ import annotations

import hashlib
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

from ..authz.store import Target
from ..errors import ApiError, tabular_missing
from ..models import Tabular, Warehouse
from ..requests import read_body
from ..responses import json_response
from ..server import Lakekeeper, Server, find_warehouse
from ..storage import WarehouseStorage
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
    with server.database.read() as session:
        warehouse = find_warehouse(session, str(warehouse_id), active=True)
        tabular = session.get(Tabular, str(tabular_id))
        if tabular is None or tabular.warehouse_id != warehouse.id or tabular.deleted_at is not None:
            raise tabular_missing("table")
        storage = server.storage_of(session, warehouse)
        _check_right(server, session, tabular, body)
    return _signed(server, storage, tabular.location, body)


@router.post("/aws/s3/sign")
def sign_without_warehouse() -> Response:
    message = "No prefix specified. The warehouse-id must be provided as prefix in the URL."
    raise ApiError(400, "NoPrefixProvided", message)


@router.post("/{warehouse_id}/v1/aws/s3/sign")
@router.post("/signer/{warehouse_id}/v1/aws/s3/sign")
def sign_in_warehouse(
    server: Server, warehouse_id: UUID, body: Annotated[SignRequest, read_body(SignRequest)]
) -> Response:
    """For clients that lost the table's id on the way: the table is found by its location."""
    with server.database.read() as session:
        warehouse = find_warehouse(session, str(warehouse_id), active=True)
        storage = server.storage_of(session, warehouse)
        tabular = _tabular_holding(session, warehouse, _requested(server, storage, body)[0])
        _check_right(server, session, tabular, body)
    return _signed(server, storage, tabular.location, body)


def _requested(server: Lakekeeper, storage: WarehouseStorage, body: SignRequest) -> list[str]:
    return requested(storage, body, listings=server.settings.since("0.14"))


def _check_right(server: Lakekeeper, session: Session, tabular: Tabular, body: SignRequest) -> None:
    """To read for what only reads, to write for the rest."""
    read = "read_data" if tabular.kind == "table" else "select"
    write = "write_data" if tabular.kind == "table" else "commit"
    action = read if body.method.upper() in ("GET", "HEAD") else write
    server.authorizer.require(session, Target(tabular.kind, tabular.id), action)


def _tabular_holding(session: Session, warehouse: Warehouse, uri: str) -> Tabular:
    parts = uri.split("/")
    above = ["/".join(parts[:end]) for end in range(3, len(parts) + 1)]
    query = select(Tabular).where(
        Tabular.warehouse_id == warehouse.id, Tabular.location.in_(above), Tabular.deleted_at.is_(None)
    )
    tabular = session.scalars(query).first()
    if tabular is None:
        raise tabular_missing("table")
    return tabular


def _signed(server: Lakekeeper, storage: WarehouseStorage, location: str, request: SignRequest) -> Response:
    if not storage.profile.remote_signing_enabled:
        raise ApiError(403, "RemoteSigningDisabled", "Remote signing is disabled for this warehouse.")
    folder = f"s3://{location.partition('://')[2]}/"
    if request.region != storage.profile.region:
        raise ApiError(400, "RegionMismatch", "Region does not match storage profile")
    for uri in [*_requested(server, storage, request), *copied(request)]:
        if not uri.startswith(folder) or ".." in uri.split("/"):
            message = f"Cannot sign a request for `{uri}`: it is outside of the table's location `{location}`."
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
