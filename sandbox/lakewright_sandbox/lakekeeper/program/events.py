"""Publish change events to NATS: a small part of its text protocol."""

from __future__ import annotations

import json
import re
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.protocol.clock import new_id

_TABLES = re.compile(r"/catalog/v1/[^/]+/namespaces/[^/]+/tables(/[^/]+)?")
_KINDS = {("POST", False): "createTable", ("POST", True): "updateTable", ("DELETE", True): "dropTable"}
"""Kind of event by method and by whether the path names a table."""


class EventBrokerError(SandboxError):
    """The broker of change events cannot be reached, or refuses the login."""


class NatsPublisher:
    """A connection to NATS, without TLS. A lost connection is opened again for the next event."""

    def __init__(self, address: str, topic: str, login: dict[str, str]) -> None:
        """Connect. `login` has the fields of CONNECT. Raises EventBrokerError."""
        parts = urlsplit(address)
        self._address, self._topic, self._login = (parts.hostname or "", parts.port or 4222), topic, login
        self._lock = threading.Lock()
        self._socket = self._connect()

    def publish(self, event: dict[str, Any]) -> None:
        """Publish one event. Raises EventBrokerError."""
        payload = json.dumps(event).encode()
        message = b"PUB %s %d\r\n%s\r\nPING\r\n" % (self._topic.encode(), len(payload), payload)
        with self._lock:
            try:
                self._request(self._socket, message)
            except (OSError, EventBrokerError):
                self._socket = self._connect()
                self._request(self._socket, message)

    def _connect(self) -> socket.socket:
        options = {"verbose": False, "pedantic": False, "lang": "python", "version": "1", **self._login}
        try:
            connection = socket.create_connection(self._address, 5)
            connection.recv(65536)  # INFO
            self._request(connection, b"CONNECT %s\r\nPING\r\n" % json.dumps(options).encode())
        except OSError as error:
            raise EventBrokerError(f"NATS cannot be reached: {type(error).__name__}") from None
        return connection

    def _request(self, connection: socket.socket, message: bytes) -> None:
        """Send lines that end with PING, and wait for PONG. The server may send a PING first."""
        connection.sendall(message)
        received = b""
        while b"PONG" not in received:
            part = connection.recv(65536)
            if not part or b"-ERR" in part:
                raise EventBrokerError("NATS refused the connection")
            if b"PING" in part:
                connection.sendall(b"PONG\r\n")
            received += part


class ChangeEvents:
    """Middleware that publishes an event for each successful change of a table."""

    def __init__(self, app: ASGIApp, publisher: NatsPublisher) -> None:
        """Wrap an application."""
        self._app, self._publisher = app, publisher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        match = _TABLES.fullmatch(scope["path"]) if scope["type"] == "http" else None
        kind = _KINDS.get((scope["method"], bool(match[1]))) if match else None

        async def send_and_publish(message: Message) -> None:
            if kind and message["type"] == "http.response.start" and message["status"] < 300:
                event = {"specversion": "1.0", "id": new_id(), "type": kind, "source": "uri:iceberg-catalog-service"}
                self._publisher.publish(event)
            await send(message)

        await self._app(scope, receive, send_and_publish)
