"""The server of `lakewright ui`: the page, and the report as JSON for a browser that has the token.

It listens on the loopback address only. The token is in the fragment of the address, which browsers send to no server;
the page sends it in a header. Requests for another host name are refused, so a site whose name resolves to the loopback
address (DNS rebinding) gets nothing. The page itself has no data.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from typing_extensions import override

from lakewright.report.page import render_report

if TYPE_CHECKING:
    from lakewright.report.live_report import LiveReport

ADDRESS = "127.0.0.1"
_HOSTS = (ADDRESS, "localhost")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of all responses. The page has a stricter policy of its own, which may not name frames."""
_IDLE_SECONDS = 30


class ReportServer(ThreadingHTTPServer):
    """Serves a live report on the loopback address."""

    daemon_threads = True

    def __init__(self, report: LiveReport, port: int = 0) -> None:
        """Listen on a port.

        Args:
            report: The report.
            port: The port. 0 for any free port.

        Raises:
            OSError: The port is in use, or may not be used.
        """
        super().__init__((ADDRESS, port), _ReportHandler)
        self.report = report
        self.token = secrets.token_urlsafe(32)
        self.page = render_report(None).encode()

    @property
    def url(self) -> str:
        """The address to open in a browser. It holds the token."""
        return f"http://{ADDRESS}:{self.server_port}/#{self.token}"

    def is_own_host(self, host: str) -> bool:
        """Return whether a request's `Host` is this server."""
        return host in {f"{name}:{self.server_port}" for name in _HOSTS}

    def is_authorized(self, authorization: str) -> bool:
        """Return whether a request's `Authorization` has the token."""
        return secrets.compare_digest(authorization.encode(), f"Bearer {self.token}".encode())


class _ReportHandler(BaseHTTPRequestHandler):
    server: ReportServer  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = _IDLE_SECONDS
    server_version = "lakewright"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page, or the report."""
        if not self._is_expected_host():
            return
        if self.path == "/":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif self.path == "/report.json":
            if self._is_permitted():
                self._send_report()
        else:
            self._send(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Collect the sources again."""
        if not self._is_expected_host():
            return
        if self.path != "/refresh":
            self._send(HTTPStatus.NOT_FOUND)
        elif self._is_permitted():
            self.server.report.refresh()
            self._send(HTTPStatus.ACCEPTED)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal shows what is collected."""

    def _send_report(self) -> None:
        content, version = self.server.report.content
        if self.headers.get("If-None-Match") == version:
            self._send(HTTPStatus.NOT_MODIFIED)
        else:
            self._send(HTTPStatus.OK, content, "application/json", version)

    def _is_expected_host(self) -> bool:
        """Return whether the request is for this server; otherwise refuse it."""
        if self.server.is_own_host(self.headers.get("Host", "")):
            return True
        self._send(HTTPStatus.MISDIRECTED_REQUEST)
        return False

    def _is_permitted(self) -> bool:
        """Return whether the request has the token; otherwise refuse it."""
        if self.server.is_authorized(self.headers.get("Authorization", "")):
            return True
        self._send(HTTPStatus.FORBIDDEN)
        return False

    def _send(self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain", version: str = "") -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if version:
            self.send_header("ETag", version)
        self.end_headers()
        self.wfile.write(body)
