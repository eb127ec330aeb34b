"""Record the HTTP calls of an action, and repeat them bare, with as many at the same time."""

# botocore carries no types; what comes of it is cast where it is used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, cast
from unittest.mock import patch

import httpx
from botocore.httpsession import URLLib3Session

_HOP = {"host", "connection", "content-length"}
_TOKEN = "/token"
"""End of the path of the sandbox's identity provider."""

_Request = tuple[str, str, dict[str, str], bytes]
"""Method, URL, headers and body."""


class RecordedCalls:
    """The requests that an action sent, to Lakekeeper servers and to AWS."""

    def __init__(self, action: Callable[[], object]) -> None:
        """Run the action, and record its requests."""
        self._requests: list[_Request] = []
        lock, send, send_to_aws = threading.Lock(), httpx.Client.send, cast(Any, URLLib3Session).send

        def record_request(client: httpx.Client, request: httpx.Request, **options: object) -> httpx.Response:
            response = send(client, request, **options)  # pyright: ignore[reportArgumentType]
            sent = response.request
            is_token = sent.url.path.endswith(_TOKEN)
            assert sent.method == "GET" or is_token, f"drift sent {sent.method} {sent.url}"
            headers = {name: value for name, value in sent.headers.items() if name not in _HOP}
            with lock:
                self._requests.append((sent.method, str(sent.url), headers, sent.content))
            return response

        def record_aws_request(session: Any, request: Any) -> Any:
            headers = {name: _text(value) for name, value in request.headers.items() if name.lower() not in _HOP}
            body = request.body or b""
            with lock:
                content = body.encode() if isinstance(body, str) else bytes(body)
                self._requests.append((request.method, request.url, headers, content))
            return send_to_aws(session, request)

        with ExitStack() as stack:
            stack.enter_context(patch.object(httpx.Client, "send", record_request))
            stack.enter_context(patch.object(URLLib3Session, "send", record_aws_request))
            action()

    def __len__(self) -> int:
        return len(self._requests)

    def repeat(self, parallel: int) -> None:
        """Send all requests again with one client, and read their responses."""
        limits = httpx.Limits(max_connections=parallel, max_keepalive_connections=parallel)
        with httpx.Client(limits=limits, timeout=120) as client, ThreadPoolExecutor(parallel) as pool:

            def call(request: _Request) -> None:
                method, url, headers, content = request
                response = client.request(method, url, headers=headers, content=content)
                if response.headers.get("content-type", "").startswith("application/json"):
                    response.raise_for_status().json()

            for _ in pool.map(call, self._requests):
                pass


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
