"""Idempotency keys: a repeated mutation returns the first response without running again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.catalog.scope import WarehouseId
from lakewright_sandbox.lakekeeper.database.models import IdempotencyKeyRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server
from lakewright_sandbox.typed.json_values import is_object

SECRET_FIELDS = ("config", "storage-credentials")


class IdempotentRequest:
    """One mutation of the catalog, with or without an idempotency key."""

    def __init__(self, server: Lakekeeper, warehouse: str, endpoint: str, key: str | None) -> None:
        """Set the warehouse, the endpoint and the key."""
        self._server = server
        self._warehouse = warehouse
        self._endpoint = endpoint
        self._key = key

    def run(self, action: Callable[[], Response], reload: Callable[[], Response] | None = None) -> Response:
        """Run the action, or return its earlier response; `again` renews a response with credentials."""
        if self._key is None:
            return action()
        if (earlier_response := self._claim()) is not None:
            return reload() if reload else earlier_response
        try:
            response = action()
        except BaseException:
            self._release()
            raise
        self._store_response(response)
        return response

    def _claim(self) -> Response | None:
        """Claim the key, or return the response that it already has."""
        assert self._key is not None
        now = self._server.clock.now()
        oldest = now - self._server.settings.idempotency_seconds * 1_000_000
        row = IdempotencyKeyRow(
            warehouse_id=self._warehouse, key=self._key, endpoint=self._endpoint, status=None, created_at=now
        )
        try:
            with self._server.database.write() as session:
                session.execute(delete(IdempotencyKeyRow).where(IdempotencyKeyRow.created_at < oldest))
                earlier_row = session.get(IdempotencyKeyRow, (self._warehouse, self._key))
                if earlier_row is None:
                    session.add(row)
        except IntegrityError:
            return None
        if earlier_row is None:
            return None
        if earlier_row.endpoint != self._endpoint:
            raise ApiError(
                400, "IdempotencyKeyReused", f"Idempotency key was used for `{earlier_row.endpoint}` before."
            )
        if earlier_row.status is None:
            raise ApiError(409, "RequestInProgress", "A request with this idempotency key is still running.")
        return (
            json_response(json.loads(earlier_row.answer), earlier_row.status)
            if earlier_row.answer
            else empty(earlier_row.status)
        )

    def _store_response(self, response: Response) -> None:
        body = json.loads(bytes(response.body)) if response.body else None
        if is_object(body):
            body = {key: value for key, value in body.items() if key not in SECRET_FIELDS}
        with self._server.database.write() as session:
            row = session.get(IdempotencyKeyRow, (self._warehouse, self._key))
            if row is not None:
                row.status, row.answer = response.status_code, json.dumps(body) if body is not None else None

    def _release(self) -> None:
        with self._server.database.write() as session:
            row = session.get(IdempotencyKeyRow, (self._warehouse, self._key))
            if row is not None:
                session.delete(row)


async def idempotent_request(request: Request, server: Server, warehouse: WarehouseId) -> IdempotentRequest:
    """Return the request with its key. Raises 400 for an invalid key."""
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1 and server.settings.is_at_least("0.12"):
        raise ApiError(400, "DuplicateIdempotencyKey", "More than one `Idempotency-Key` header was sent.")
    key = keys[0] if keys and server.settings.is_at_least("0.12") else None
    if key is not None:
        try:
            key = str(UUID(key))
        except ValueError:
            raise ApiError(400, "InvalidIdempotencyKey", f"Idempotency key must be a UUID, found `{key}`.") from None
    endpoint = f"{request.method} {request.scope['route'].path}"
    return IdempotentRequest(server, warehouse, endpoint, key)


Idempotency = Annotated[IdempotentRequest, Depends(idempotent_request)]
