"""A way to a server on which requests are refused, answers get lost, and whoever asks may be killed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import httpx
from starlette.types import Receive, Scope, Send

Strike = Callable[[str, Callable[[], httpx.Response]], httpx.Response]
"""What becomes of a request, given its line (`POST /bucket/?delete`) and a way to pass it on."""

FRAMING = {b"connection", b"content-length", b"transfer-encoding", b"expect"}
"""Headers of a request that are no longer so when its body has been read; no signature covers them."""

ENCODED = {b"content-length", b"content-encoding", b"transfer-encoding", b"connection"}
"""Headers of an answer that are no longer so when it has been read."""


class Storm:
    """Passes everything on while it is calm. `lines` are the requests since it last rose."""

    def __init__(self, behind: str) -> None:
        self.behind = behind.rstrip("/")
        self.http = httpx.Client(timeout=60, limits=httpx.Limits(max_connections=None), trust_env=False)
        self.lines: list[str] = []
        self._strike: Strike | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        answer = await asyncio.to_thread(self._answer, scope, body)
        kept = [(k, v) for k, v in answer.headers.raw if k.lower() not in ENCODED or scope["method"] == "HEAD"]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        await send({"type": "http.response.body", "body": answer.content})

    def _answer(self, scope: Scope, body: bytes) -> httpx.Response:
        path = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        # A signature covers the headers as they were sent, host and encoding with them.
        kept = [(k, v) for k, v in scope["headers"] if k not in FRAMING]

        def passed_on() -> httpx.Response:
            return self.http.request(scope["method"], self.behind + path.decode(), headers=kept, content=body)

        line = f"{scope['method']} {path.decode()}"
        with self._lock:
            self.lines.append(line)
            strike = self._strike
        return strike(line, passed_on) if strike else passed_on()

    @contextmanager
    def rising(self, strike: Strike) -> Iterator[None]:
        """With this, for as long as the block lasts."""
        self.lines.clear()
        self._strike = strike
        try:
            yield
        finally:
            self._strike = None


def refusal(status: int = 503) -> httpx.Response:
    """What a store or a gateway in trouble says."""
    text = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
    return httpx.Response(status, headers={"Content-Type": "application/xml"}, text=text)


def at_random(random: Random, share: float, hits: list[str]) -> Strike:
    """Refuses this share of the requests, half of them after they have taken effect: their answers are lost."""
    lock = threading.Lock()

    def strike(line: str, passed_on: Callable[[], httpx.Response]) -> httpx.Response:
        with lock:
            struck, afterwards = random.random() < share, random.random() < 0.5
        if not struck:
            return passed_on()
        hits.append(line)
        if afterwards:
            passed_on()
        return refusal(502 if afterwards else 503)

    return strike


def killing(kill: Callable[[], None], nth: int, line: str = "") -> Strike:
    """Kills at the nth request with this in its line, before it has an effect; nobody hears the answer."""
    lock, seen = threading.Lock(), [0]

    def strike(asked: str, passed_on: Callable[[], httpx.Response]) -> httpx.Response:
        with lock:
            seen[0] += line in asked
            due = line in asked and seen[0] >= nth
        if not due:
            return passed_on()
        kill()
        return refusal()

    return strike
