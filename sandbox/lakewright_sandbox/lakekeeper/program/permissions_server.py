"""Ask OpenFGA before each request, as the real server does. The stand-in itself decides on permissions."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import grpc
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from lakewright_sandbox.lakekeeper.program.environment import EnvironmentRefusedError
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

_SERVING = b"\x08\x01"
"""A HealthCheckResponse (grpc.health.v1) with the status SERVING."""
_DEFAULT_PORT = 8081


class PermissionsServer:
    """A connection to OpenFGA (gRPC), which is opened again after it ended."""

    def __init__(self, endpoint: str) -> None:
        """Use the address of OpenFGA, without connecting to it. Raises EnvironmentRefusedError for an unknown name."""
        address = urlsplit(endpoint)
        try:
            # gRPC's own resolver waits for DNS even for names of /etc/hosts.
            host = socket.gethostbyname(address.hostname or "")
        except OSError as error:
            raise EnvironmentRefusedError(f"OpenFGA cannot be reached: {type(error).__name__}") from None
        channel: Any = grpc.insecure_channel(f"{host}:{address.port or _DEFAULT_PORT}")
        self._check: Callable[..., bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")

    def require(self) -> None:
        """Refuse to start without OpenFGA. Raises EnvironmentRefusedError."""
        if not self.is_serving():
            raise EnvironmentRefusedError("OpenFGA cannot be reached, or does not serve")

    def is_serving(self) -> bool:
        """Return whether OpenFGA responds that it serves. A failed call is not repeated."""
        try:
            return self._check(b"", timeout=5) == _SERVING
        except grpc.RpcError:
            return False


class PermissionChecks:
    """Middleware that responds 503 to a request for which OpenFGA cannot be asked."""

    def __init__(self, app: ASGIApp, server: PermissionsServer) -> None:
        """Wrap an application."""
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] == "http" and not await run_in_threadpool(self._server.is_serving):
            error = ApiError(503, "AuthorizationBackendError", "Authorization service is unavailable")
            await error.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)
