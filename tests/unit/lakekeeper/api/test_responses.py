"""Invalid responses: endless, huge, slow, deep or incomplete ones. Each ends in one sentence."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from lakewright.http.responses import retry_after
from lakewright.lakekeeper.api.catalog import tables
from lakewright.lakekeeper.api.connection import paging
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    BadResponseError,
    InsecureEndpointError,
    LakekeeperError,
    NotAuthenticatedError,
    RefusedError,
    ResponseTimeoutError,
)
from lakewright.lakekeeper.api.connection.privileges import Object
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import permissions, projects, roles, users, warehouses

from tests.unit.lakekeeper.scripted_server import OK, QUICK, Script, refusal

Handle = Callable[[BaseHTTPRequestHandler], None]
MEBIBYTE = 1 << 20


@contextmanager
def server(handle: Handle) -> Iterator[str]:
    """Serve on a free port; `handle` responds to each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            handle(self)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def respond_with_body(body: bytes, status: int = 200, **headers: str) -> Handle:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return handle


def bomb(mebibytes: int) -> bytes:
    """Return zeros, compressed about a thousandfold."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    zeros = bytes(MEBIBYTE)
    return b"".join(packer.compress(zeros) for _ in range(mebibytes)) + packer.flush()


def client(endpoint: str, **more: Any) -> Client:
    return Client(ServerRef(endpoint=endpoint, **more), str, retry=QUICK)


@pytest.mark.parametrize("status", [200, 500])
def test_compression_bomb_costs_no_more_than_the_limit(status: int) -> None:
    """298 KiB that become 300 MiB cost 614 MiB before the limit."""
    packed = bomb(300)
    with server(respond_with_body(packed, status, Content_Encoding="gzip")) as endpoint:
        api_client = client(endpoint)
        tracemalloc.start()
        try:
            with pytest.raises(BadResponseError, match="is larger than 64 MiB") as caught:
                api_client.json("GET", "/x")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert len(packed) < 300 * 1024
    assert peak < 200 * MEBIBYTE
    assert "GET /x at" in str(caught.value)


def test_size_limit_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_ANSWER_LIMIT", "0.5")
    body = json.dumps({"text": "x" * MEBIBYTE}).encode()
    with server(respond_with_body(body)) as endpoint, pytest.raises(BadResponseError, match=r"larger than 0.5 MiB"):
        client(endpoint).json("GET", "/x")


def test_compressed_response_is_read() -> None:
    """Lakekeeper compresses responses where the client accepts it."""
    halves = gzip.compress(b'{"ok":') + gzip.compress(b" true}")
    with server(respond_with_body(halves, Content_Encoding="gzip")) as endpoint:
        assert client(endpoint).json("GET", "/x") == {"ok": True}


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (gzip.compress(b'{"ok": true}')[:-9], "gzip", "ends in the middle"),
        (b'{"ok": true}', "gzip", "is not gzip data"),
        (b"\x0b\x05\x80", "br", "encoded as 'br', which was not asked for"),
    ],
)
def test_unreadable_encodings(body: bytes, encoding: str, says: str) -> None:
    with (
        server(respond_with_body(body, Content_Encoding=encoding)) as endpoint,
        pytest.raises(BadResponseError, match=says),
    ):
        client(endpoint).json("GET", "/x")


def test_slow_body_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_ANSWER_WITHIN", "0.3")
    never = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        body = b'{"ok": true}' + b" " * 100
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        for byte in body:
            request.wfile.write(bytes([byte]))
            never.wait(0.02)

    with server(drip) as endpoint, pytest.raises(ResponseTimeoutError, match=r"did not respond within 0.3 s"):
        client(endpoint).json("GET", "/x")


@pytest.mark.parametrize(
    "dripped", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["header", "1xx"]
)
def test_slow_headers_have_the_same_deadline(dripped: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_ANSWER_WITHIN", "0.3")
    ended = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        part = dripped
        while not ended.wait(0.02):
            request.wfile.write(part)
            part = dripped if dripped.endswith(b"\n") else b"x"

    with server(drip) as endpoint:
        try:
            with pytest.raises(ResponseTimeoutError, match=r"did not respond within 0.3 s"):
                client(endpoint).json("GET", "/x")
        finally:
            ended.set()


@pytest.mark.parametrize("status", [200, 418])
@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 200_000, b'{"a": 1' + b"0" * 5000 + b"}", b"\xff\xfe"])
def test_unreadable_json_is_one_sentence(body: bytes, status: int) -> None:
    script = Script(httpx.Response(status, content=body))
    with pytest.raises(RefusedError) as caught:
        script.client().json("GET", "/x")
    assert str(caught.value).startswith("GET /x at http://lake.test:8181 responded")


NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2),
        ("0", 0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("\u00b2", None),
        ("9" * 400, 999_999_999),
        ("Sun, 22 Nov 2026 09:00:07 GMT", 7),
        ("Sun, 22 Nov 2020 09:00:07 GMT", 0),
        ("Sun, 99 Nov 2026 09:00:07 GMT", None),
        ("Sun, 22 Nov 2026 09:00:07 -0000", 7),
    ],
)
def test_retry_after_in_every_form(value: str, seconds: float | None) -> None:
    assert retry_after(value, lambda: NOW) == seconds


@pytest.mark.parametrize("value", ["-5", "9" * 400, "\u00b2", "soon", "Sun, 22 Nov 2099 09:00:07 GMT"])
def test_no_retry_after_ends_or_delays_a_call(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waits.append)
    busy = httpx.Response(429, headers=[(b"retry-after", value.encode("latin-1"))])
    assert Script(busy, OK).client().json("GET", "/x") == {"ok": True}
    assert len(waits) == 1
    assert 0 <= waits[0] <= 10


def endless_pages(next_token: Callable[[int], str]) -> Client:
    """Return the endpoint of a server whose lists always have another page."""
    count = iter(range(1_000_000))

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"users": [], "next-page-token": next_token(next(count))})

    return Client(ServerRef(endpoint="http://lake.test"), str, retry=QUICK, transport=httpx.MockTransport(answer))


@pytest.mark.parametrize("next_token", [lambda _: "same", lambda n: "ab"[n % 2]], ids=["same", "alternating"])
def test_list_with_repeating_tokens_ends(next_token: Callable[[int], str]) -> None:
    with pytest.raises(BadResponseError, match=r"GET /management/v1/user at .* repeats a page token"):
        users.list_all(endless_pages(next_token))


def test_list_with_ever_new_tokens_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MOST_PAGES", 40)
    with pytest.raises(BadResponseError, match="has no end after 40 pages"):
        users.list_all(endless_pages(str))


ON = Object("project", project_id="p")


@pytest.mark.parametrize(
    ("body", "key", "read"),
    [
        ({}, "projects", projects.list_all),
        ({"projects": [{}]}, "project-id", projects.list_all),
        ({}, "project-name", lambda c: projects.read_name(c, "p")),
        ({}, "allowed-actions", projects.sees_all),
        ({}, "id", users.ourselves),
        ({}, "users", users.list_all),
        ({}, "roles", lambda c: roles.list_all(c, "p")),
        ({"roles": [{}]}, "name", lambda c: roles.find_by_name(c, "p", "r")),
        ({}, "managed-access", lambda c: permissions.read_warehouse_access(c, "w")),
        ({}, "assignments", lambda c: permissions.list_grants(c, ON)),
        ({"assignments": [{}]}, "type", lambda c: permissions.list_grants(c, ON)),
        ({}, "metadata", lambda c: tables.load(c, "w", "ns", "t")),
        ({}, "id", lambda c: warehouses.read_id(c.json("GET", "/x"))),
    ],
)
def test_missing_key_is_one_sentence(body: Any, key: str, read: Callable[[Client], Any]) -> None:
    script = Script(httpx.Response(200, json=body))
    with pytest.raises(BadResponseError) as caught:
        read(script.client())
    assert f"responded without `{key}`. Is this a Lakekeeper server" in str(caught.value)
    assert "\n" not in str(caught.value)


TOKEN = {"kind": "token", "token": "env:TOKEN"}
CREDENTIALS = {"kind": "client-credentials", "client_id": "c", "client_secret": "env:SECRET"}


@pytest.mark.parametrize(
    ("endpoint", "auth"),
    [
        ("http://lakekeeper.platform.svc:8181", TOKEN),
        ("http://10.0.0.7:8181", TOKEN),
        ("https://lakekeeper.example", CREDENTIALS | {"token_url": "http://idp.example/token"}),
    ],
)
def test_secrets_are_not_sent_without_tls(endpoint: str, auth: dict[str, str]) -> None:
    resolved: list[str] = []
    with pytest.raises(InsecureEndpointError, match=r"without TLS\. Use `https://`, or set `allow_plain_http: true`"):
        Client(ServerRef.model_validate({"endpoint": endpoint, "auth": auth}), lambda it: resolved.append(it) or "x")
    assert resolved == []
    allowed = {"endpoint": endpoint, "auth": auth, "allow_plain_http": True}
    Client(ServerRef.model_validate(allowed), str).close()


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8181", "http://localhost:8181", "http://[::1]:8181"])
def test_loopback_needs_no_tls(endpoint: str) -> None:
    Client(ServerRef.model_validate({"endpoint": endpoint, "auth": TOKEN}), str).close()


def test_token_endpoint_responses_are_limited_too() -> None:
    with server(respond_with_body(bomb(3), Content_Encoding="gzip")) as idp:
        auth = CREDENTIALS | {"token_url": f"{idp}/token"}
        with pytest.raises(NotAuthenticatedError, match=r"token endpoint .* is larger than 1 MiB"):
            client("http://127.0.0.1:9", auth=auth).json("GET", "/x")


def test_401_before_a_new_token_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_ANSWER_LIMIT", "1")
    with (
        server(respond_with_body(bomb(3), 401, Content_Encoding="gzip")) as endpoint,
        pytest.raises(LakekeeperError) as caught,
    ):
        client(endpoint, auth=TOKEN).json("GET", "/x")
    assert "is larger than 1 MiB" in str(caught.value)


def test_refusal_keeps_its_message() -> None:
    with pytest.raises(RefusedError, match="409 Odd: because"):
        Script(refusal(409, "Odd", "because")).client().json("GET", "/x")
