"""A server that responds like Texera's computing-unit-managing-service to the calls of a registration."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

USERS = {"Bearer token": "REGULAR", "Bearer restricted": "RESTRICTED"}
"""Roles of users by their tokens. Other tokens are refused."""


@dataclass
class TexeraServer:
    """The server's state."""

    url: str = ""
    local_units: bool = True
    """Texera's setting `computing-unit.local.enabled`."""
    created: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    shared: dict[str, Any] | None = None
    """Unit of another user."""
    page: str | None = None
    """Response of a server that is no Texera."""

    def list_units(self) -> list[dict[str, Any]]:
        units = [describe_unit(body, number, owner=True) for number, body in enumerate(self.created, start=1)]
        return units + ([describe_unit(self.shared, 99, owner=False)] if self.shared else [])

    def create(self, body: dict[str, Any]) -> tuple[int, object]:
        if body["unitType"] == "local" and not self.local_units:
            return 403, {"code": 403, "message": "Unit type 'local' is not allowed. Valid options: kubernetes"}
        self.created.append(body)
        return 200, describe_unit(body, len(self.created), owner=True)


def describe_unit(body: dict[str, Any], number: int, *, owner: bool) -> dict[str, Any]:
    """Return a unit as Texera's dashboard gets it."""
    unit = {"cuid": number, "name": body["name"], "uri": body["uri"], "type": "local", "terminateTime": None}
    return {"computingUnit": unit, "status": "Running", "isOwner": owner, "accessPrivilege": "WRITE"}


@contextmanager
def serve_texera() -> Generator[TexeraServer, None, None]:
    """Serve until the block ends."""
    texera = TexeraServer()

    class TexeraHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(lambda: (200, texera.list_units()))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.answer(lambda: texera.create(body))

        def answer(self, act: Any) -> None:
            role = USERS.get(self.headers.get("authorization", ""))
            if role is None:
                status, document = 401, {"message": "Credentials are required"}
            elif role != "REGULAR":
                status, document = 403, {"message": "User not authorized."}
            elif self.path not in ("/api/computing-unit", "/api/computing-unit/create"):
                status, document = 404, {"message": "HTTP 404 Not Found"}
            else:
                status, document = act()
            text = texera.page or json.dumps(document)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), TexeraHandler)
    texera.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield texera
    finally:
        server.shutdown()
