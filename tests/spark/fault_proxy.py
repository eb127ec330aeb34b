"""A proxy that refuses requests, loses responses, or kills the client at a chosen request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import httpx
from starlette.types import Receive, Scope, Send

Fault = Callable[[str, Callable[[], httpx.Response]], httpx.Response]
"""Return the response to a request, given its line (`POST /bucket/?delete`) and a function that forwards it."""

FRAMING = {b"connection", b"content-length", b"transfer-encoding", b"expect"}
"""Request headers that do not apply once the body is read; no signature covers them."""

DELEGATION = b"x-iceberg-access-delegation"

ENCODED = {b"content-length", b"content-encoding", b"transfer-encoding", b"connection"}
"""Response headers that do not apply once the body is read."""


@dataclass
class Exchange:
    """A request and the status of its response; 0 without one."""

    line: str
    delegation: str
    """The header that asks for credentials."""
    status: int = 0


class FaultInjectingProxy:
    """Forwards every request except while a fault is injected. `exchanges` are those since the last injection."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.rstrip("/")
        self.http = httpx.Client(timeout=60, limits=httpx.Limits(max_connections=None), trust_env=False)
        self.exchanges: list[Exchange] = []
        self._fault: Fault | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        response = await asyncio.to_thread(self._answer, scope, body)
        headers = [(k, v) for k, v in response.headers.raw if k.lower() not in ENCODED or scope["method"] == "HEAD"]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.content})

    def _answer(self, scope: Scope, body: bytes) -> httpx.Response:
        path = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        # A signature covers the original headers, including host and encoding.
        headers = [(k, v) for k, v in scope["headers"] if k not in FRAMING]

        def forward() -> httpx.Response:
            return self.http.request(scope["method"], self.upstream + path.decode(), headers=headers, content=body)

        line = f"{scope['method']} {path.decode()}"
        exchange = Exchange(line, dict(scope["headers"]).get(DELEGATION, b"").decode())
        with self._lock:
            self.exchanges.append(exchange)
            fault = self._fault
        response = fault(line, forward) if fault else forward()
        exchange.status = response.status_code
        return response

    @property
    def lines(self) -> list[str]:
        """The request lines of all exchanges."""
        return [exchange.line for exchange in self.exchanges]

    @contextmanager
    def inject(self, fault: Fault) -> Iterator[None]:
        """Apply a fault to every request until the block ends."""
        self.exchanges.clear()
        self._fault = fault
        try:
            yield
        finally:
            self._fault = None


def unavailable(status: int = 503) -> httpx.Response:
    """Return the response of an overloaded store or gateway."""
    text = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
    return httpx.Response(status, headers={"Content-Type": "application/xml"}, text=text)


def random_faults(random: Random, share: float, hits: list[str]) -> Fault:
    """Return a fault that refuses this share of requests, half of them after they took effect (lost responses)."""
    lock = threading.Lock()

    def fault(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        with lock:
            is_hit, is_applied = random.random() < share, random.random() < 0.5
        if not is_hit:
            return forward()
        hits.append(line)
        if is_applied:
            forward()
        return unavailable(502 if is_applied else 503)

    return fault


def kill_at_request(kill: Callable[[], None], nth: int, line: str = "") -> Fault:
    """Return a fault that calls `kill` at the nth request whose line contains a text, before it takes effect."""
    lock, count = threading.Lock(), [0]

    def fault(request_line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        with lock:
            count[0] += line in request_line
            due = line in request_line and count[0] >= nth
        if not due:
            return forward()
        kill()
        return unavailable()

    return fault
