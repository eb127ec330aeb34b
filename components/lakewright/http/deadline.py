"""One deadline for a whole HTTP call: connection, TLS, request, headers and body.

httpx limits each read only, so a server that sends one byte at a time could hold a call for hours.
"""

import ssl
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

_call = threading.local()
"""`deadline` is the deadline of this thread's current call."""


@contextmanager
def call_within(seconds: float) -> Generator[None]:
    """Limit the total time of all reads and writes of this thread, in seconds."""
    before: float | None = getattr(_call, "deadline", None)
    _call.deadline = time.monotonic() + seconds
    try:
        yield
    finally:
        _call.deadline = before


def enforce_deadlines(client: httpx.Client) -> None:
    """Make a client's connections obey `call_within`, including those through proxies of the environment."""
    # httpx has no public access to a network backend. The test of slow headers fails if these names change.
    for transport in (client._transport, *client._mounts.values()):  # pyright: ignore[reportPrivateUsage]
        pool: Any = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend(pool._network_backend)


def _limit_timeout(timeout: float | None, passed: type[Exception]) -> float | None:
    deadline: float | None = getattr(_call, "deadline", None)
    if deadline is None:
        return timeout
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise passed("the deadline of the call has passed")
    return seconds if timeout is None else min(timeout, seconds)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = _limit_timeout(timeout, httpcore.ConnectTimeout)
        return _Stream(self._backend.connect_tcp(host, port, seconds, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        seconds = _limit_timeout(timeout, httpcore.ConnectTimeout)
        return _Stream(self._backend.connect_unix_socket(path, seconds, socket_options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _limit_timeout(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _limit_timeout(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        seconds = _limit_timeout(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
