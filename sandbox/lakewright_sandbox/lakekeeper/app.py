"""The ASGI application: routes, common response headers, and error responses."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakewright_sandbox.lakekeeper.audit_log import AuditLog
from lakewright_sandbox.lakekeeper.authentication.middleware import Authentication
from lakewright_sandbox.lakekeeper.authentication.verifiers import create_verifiers
from lakewright_sandbox.lakekeeper.authz.enforcement.check_request import enforce
from lakewright_sandbox.lakekeeper.protocol.clock import Clock, new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import reject_query
from lakewright_sandbox.lakekeeper.protocol.routing import SegmentRoute, SlashesWithin
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import error_type, has_call
from lakewright_sandbox.lakekeeper.routers import all_routers
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from lakewright_sandbox.lakekeeper.task_worker import TaskWorker

log = logging.getLogger(__name__)

PERMISSIONS = "/management/v1/permissions/"
_NO_DOCUMENTATION: dict[str, Any] = {
    "openapi_url": None,
    "docs_url": None,
    "redoc_url": None,
    "redirect_slashes": False,
}
VARY = b"authorization, x-project-id, x-iceberg-access-delegation"


def create_app(settings: Settings, clock: Clock | None = None) -> FastAPI:
    """Return the server as an ASGI application. Its background tasks run while it does."""
    lakekeeper = Lakekeeper(settings, clock)
    worker = TaskWorker(lakekeeper)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None, None]:
        worker.start()
        yield
        worker.stop()
        lakekeeper.database.close()

    app = FastAPI(lifespan=lifespan, **_NO_DOCUMENTATION)
    app.state.lakekeeper = lakekeeper
    app.state.worker = worker
    app.router.routes.extend(route for route in _build_routes() if _is_mounted(settings, route.path))
    if settings.audit_log is not None and settings.is_at_least("0.12"):
        app.add_middleware(AuditLog, file=settings.audit_log, default_project=settings.default_project)
    if verifiers := create_verifiers(settings):
        needs_project = settings.is_at_least("0.12") and not settings.default_project
        app.add_middleware(Authentication, verifiers=verifiers, needs_project=needs_project)
    app.add_middleware(CommonHeaders)
    app.add_middleware(SlashesWithin)
    handlers: dict[Any, Any] = {
        ApiError: _respond_to_api_error,
        RequestValidationError: _respond_to_bad_parameter,
        HTTPException: _respond_to_unknown_route,
        OperationalError: _respond_without_database,
        Exception: _respond_to_failure,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    return app


@cache
def _build_routes() -> list[APIRoute]:
    """Return the routes of all versions.

    The servers of a process share them, since FastAPI reads the signatures of their functions for a third of a second.
    """
    app = FastAPI(**_NO_DOCUMENTATION)
    app.router.route_class = SegmentRoute
    for router in all_routers():
        for route in router.routes:
            if isinstance(route, APIRoute):
                # One flat list: included routers would be matched twice for every request.
                app.add_api_route(
                    route.path, route.endpoint, methods=list(route.methods or ()), dependencies=[Depends(enforce)]
                )
    return [route for route in app.router.routes if isinstance(route, APIRoute)]


def _is_mounted(settings: Settings, path: str) -> bool:
    """Return whether the version has the call. The permissions API exists with OpenFGA alone."""
    return has_call(settings.version, path) and (settings.openfga or not path.startswith(PERMISSIONS))


async def _respond_to_api_error(request: Request, error: ApiError) -> Response:
    error.kind = error_type(request.app.state.lakekeeper.settings.version, error.kind)
    return error.response()


async def _respond_to_bad_parameter(_request: Request, error: RequestValidationError) -> Response:
    return reject_query(error).response()


async def _respond_to_unknown_route(_request: Request, error: HTTPException) -> Response:
    return Response(status_code=error.status_code)


async def _respond_without_database(request: Request, _error: Exception) -> Response:
    log.warning("%s %s: the database does not respond", request.method, request.url.path)
    return ApiError(503, "CatalogBackendError", "The database does not respond.").response()


async def _respond_to_failure(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return ApiError(500, "InternalServerError", "The server failed; see its log.").response()


class CommonHeaders:
    """Middleware that adds cache and vary headers and the request's id."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client_request_id = dict(scope["headers"]).get(b"x-request-id")
        request_id = client_request_id or new_id().encode()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                headers += [(b"vary", VARY), (b"x-request-id", request_id)]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"private"))
            await send(message)

        await self._app(scope, receive, send_with_headers)
