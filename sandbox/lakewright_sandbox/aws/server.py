"""The HTTP server in front of moto: HTTP/1.1 with keep-alive, on loopback only.

Moto's own development server closes the connection after every request, which slows clients down that send hundreds of
small requests. uvicorn keeps connections; this adapter turns its ASGI calls into moto's WSGI calls.
"""

import asyncio
import io
import ipaddress
import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote_to_bytes

import uvicorn

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_THREADS = 16


class AsgiAdapter:
    """Run a WSGI application under ASGI: read the whole body, then call the application in a thread."""

    def __init__(self, app: WsgiApp) -> None:
        """Wrap a WSGI application."""
        self._app = app
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="aws")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Respond to one ASGI request."""
        if scope["type"] != "http":
            return
        body = io.BytesIO()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body.write(message.get("body", b""))
            more = message.get("more_body", False)
        loop = asyncio.get_running_loop()
        status, headers, content = await loop.run_in_executor(self._threads, self._run, _environ(scope, body))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _run(self, environ: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        status_and_headers: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> None:
            status_and_headers[:] = [status, headers]

        content = self._app(environ, start_response)
        try:
            body = b"".join(content)
        finally:
            close = getattr(content, "close", None)
            if close:
                close()
        status, headers = status_and_headers
        encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return int(status.split(" ", 1)[0]), encoded, body


def _environ(scope: dict[str, Any], body: io.BytesIO) -> dict[str, Any]:
    raw_path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    length = body.tell()
    body.seek(0)
    host, port = scope["server"]
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(raw_path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "RAW_URI": (raw_path + (b"?" + query if query else b"")).decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": scope["client"][0] if scope["client"] else "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(length),
    }
    preserved: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name in ("content-length", "transfer-encoding", "expect"):
            continue  # the whole body has been read
        if "_" in name:
            # WSGI does not distinguish `_` from `-`: only user metadata may have it, and moto needs its spelling.
            if not name.startswith("x-amz-meta-"):
                continue
            preserved["HTTP_" + name.upper().replace("-", "_")] = name
        key = "CONTENT_TYPE" if name == "content-type" else "HTTP_" + name.upper().replace("-", "_")
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    if preserved:
        environ["moto.preserved_header_names"] = preserved
    return environ


def require_loopback(host: str) -> None:
    """Raise ValueError for an address that other machines can reach."""
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        raise ValueError(f"--host {host}: the sandbox binds to loopback addresses only, such as 127.0.0.1.")


def create_server(app: WsgiApp, host: str, port: int) -> uvicorn.Server:
    """Return a server whose `run` serves until the process is stopped or `should_exit` is set."""
    require_loopback(host)
    config = uvicorn.Config(
        AsgiAdapter(app),  # type: ignore[arg-type]
        host=host,
        port=port,
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=True,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)
