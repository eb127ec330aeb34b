"""Serve an ASGI application from a thread of this process over HTTP, for tests and benchmarks."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from lakewright_sandbox.errors import ProcessFailedError

_START_SECONDS = 30


@contextmanager
def serve(app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None) -> Generator[str, None, None]:
    """Serve an application while the block runs.

    Args:
        app: The application.
        certificate: Certificate to serve TLS with.
        key: Private key of the certificate.

    Yields:
        The endpoint, on a free loopback port.

    Raises:
        ProcessFailedError: The server did not start.
    """
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_level="error",
        access_log=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise ProcessFailedError("The server did not start; its log is above.")
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
