"""A proxy that can delay or refuse the requests that a fault selects, and forwards all other requests."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

# This proxy sets the lengths and the connection.
HOP_BY_HOP = {"transfer-encoding", "content-encoding", "content-length", "connection"}

VENDED = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")


@dataclass
class Fault:
    """A fault of requests whose line (`PUT /bucket/key`) starts with `line`."""

    line: str
    status: int = 0
    """Status of the refusal. Without it, requests are held until the fault ends: the client times out first."""
    body: str = ""
    applied: bool = False
    """Whether the server gets the request first, so that only its response is held."""
    hits: list[str] = field(default_factory=list[str])
    over: threading.Event = field(default_factory=threading.Event)


class FaultyProxy(http.server.ThreadingHTTPServer):
    """Forwards all requests to `target` unless a fault selects them."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.target = target.rstrip("/")
        self.http = httpx.Client(timeout=60, trust_env=False)
        self.fault: Fault | None = None
        self.responses: list[Any] = []
        """JSON responses of the target."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def list_vended_secrets(self) -> set[str]:
        """Return the keys and tokens in the responses to table loads."""
        return {value for response in self.responses for value in _find_secrets(response)}

    @contextmanager
    def faulty(self, line: str, status: int = 0, body: str = "", *, applied: bool = False) -> Iterator[Fault]:
        """Inject this fault within the block."""
        self.fault = fault = Fault(line, status, body, applied)
        try:
            yield fault
        finally:
            self.fault = None
            fault.over.set()


@contextmanager
def run_proxy(target: str) -> Iterator[FaultyProxy]:
    """Run a proxy in front of a server within the block."""
    with FaultyProxy(target) as proxy, proxy.http:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy
        proxy.shutdown()


class _Forward(http.server.BaseHTTPRequestHandler):
    server: FaultyProxy

    def handle_any(self) -> None:
        self.close_connection = True
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # The blank after the path lets a fault mean this path alone.
        line, fault = f"{self.command} {self.path} ", self.server.fault
        if fault and line.startswith(fault.line):
            if fault.applied:
                self._forward(content)
            fault.hits.append(line)
            if fault.status:
                self._respond(fault.status, [("Content-Type", _guess_content_type(fault.body))], fault.body.encode())
            else:
                fault.over.wait()  # The client has timed out: close the connection.
            return
        response = self._forward(content)
        if "json" in response.headers.get("content-type", "") and response.content:
            self.server.responses.append(response.json())
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in HOP_BY_HOP]
        self._respond(response.status_code, headers, response.content)

    def _forward(self, content: bytes) -> httpx.Response:
        return self.server.http.request(
            self.command,
            self.server.target + self.path,
            # A signature covers the original headers, including the host.
            headers=[(name, value) for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP],
            content=content,
        )

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - http.server's names

    def _respond(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing: tests read `hits`."""


def _find_secrets(response: Any) -> Iterator[str]:
    if isinstance(response, dict):
        yield from (str(response[key]) for key in VENDED if response.get(key))
    inner = response.values() if isinstance(response, dict) else response if isinstance(response, list) else ()
    for item in inner:
        yield from _find_secrets(item)


def _guess_content_type(body: str) -> str:
    return "application/xml" if body.startswith("<") else "application/json"
