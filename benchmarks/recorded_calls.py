"""HTTP calls: record those of an action, and repeat them bare, with as many at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from unittest.mock import patch

import httpx

_HOP = {"host", "connection", "content-length"}


class RecordedCalls:
    """The requests that an action sent."""

    def __init__(self, action: Callable[[], object]) -> None:
        """Run the action, and record its requests."""
        self._requests: list[tuple[str, httpx.URL, dict[str, str]]] = []
        lock, send = threading.Lock(), httpx.Client.send

        def recorded(client: httpx.Client, request: httpx.Request, **options: object) -> httpx.Response:
            headers = {name: value for name, value in request.headers.items() if name not in _HOP}
            assert request.method == "GET", f"drift sent {request.method} {request.url}"
            with lock:
                self._requests.append((request.method, request.url, headers))
            return send(client, request, **options)  # pyright: ignore[reportArgumentType]

        with ExitStack() as stack:
            stack.enter_context(patch.object(httpx.Client, "send", recorded))
            action()

    def __len__(self) -> int:
        return len(self._requests)

    def repeat(self, parallel: int) -> None:
        """Send all requests again with one client, and read their responses."""
        limits = httpx.Limits(max_connections=parallel, max_keepalive_connections=parallel)
        with httpx.Client(limits=limits, timeout=120) as client, ThreadPoolExecutor(parallel) as pool:

            def call(recorded: tuple[str, httpx.URL, dict[str, str]]) -> None:
                method, url, headers = recorded
                client.request(method, url, headers=headers).raise_for_status().json()

            for _ in pool.map(call, self._requests):
                pass
