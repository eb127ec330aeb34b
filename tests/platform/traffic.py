"""Continuous requests through the gateway, and their failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx

from tests.platform.machines import trust

CLIENTS = 4
PAUSE_SECONDS = 0.02


@dataclass
class Traffic:
    """Requests that clients sent, and the failures among them."""

    succeeded: int = 0
    failures: list[str] = field(default_factory=list[str])
    successes_in_a_row: int = 0
    """Requests that succeeded since the last failure."""

    def record(self, response: httpx.Response | httpx.HTTPError) -> None:
        """Count one request."""
        if isinstance(response, httpx.Response) and response.is_success:
            self.succeeded += 1
            self.successes_in_a_row += 1
            return
        self.successes_in_a_row = 0
        if isinstance(response, httpx.Response):
            self.failures.append(f"{response.request.method}: {response.status_code} {response.text[:200]}")
        else:
            self.failures.append(f"{response.request.method}: {type(response).__name__}")

    def wait_for_successes(self, count: int, seconds: float) -> None:
        """Wait until some requests succeeded without a failure between them."""
        deadline = time.monotonic() + seconds
        while self.successes_in_a_row < count:
            assert time.monotonic() < deadline, self.failures[-5:]
            time.sleep(0.1)


@contextmanager
def send_requests(base_url: str, headers: dict[str, str], trusted: Path) -> Iterator[Traffic]:
    """Send requests until the block ends: each client creates, reads and deletes namespaces, on kept connections.

    Args:
        base_url: Address of the catalog with the warehouse's prefix.
        headers: Headers with a token.
        trusted: File of certificate authorities.

    Yields:
        The counts, which grow.
    """
    traffic, stopped = Traffic(), threading.Event()
    threads = [
        threading.Thread(target=_run_client, args=(base_url, headers, trusted, traffic, stopped))
        for _ in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield traffic
    finally:
        stopped.set()
        for thread in threads:
            thread.join(90)


def _run_client(
    base_url: str, headers: dict[str, str], trusted: Path, traffic: Traffic, stopped: threading.Event
) -> None:
    with httpx.Client(base_url=base_url, headers=headers, verify=trust(trusted), timeout=70, trust_env=False) as client:
        while not stopped.is_set():
            name = f"n{uuid4().hex[:12]}"
            _send(client, traffic, "POST", "namespaces", {"namespace": [name]})
            _send(client, traffic, "GET", f"namespaces/{name}")
            _send(client, traffic, "DELETE", f"namespaces/{name}")
            stopped.wait(PAUSE_SECONDS)


def _send(
    client: httpx.Client, traffic: Traffic, method: str, path: str, body: dict[str, list[str]] | None = None
) -> None:
    try:
        response: httpx.Response | httpx.HTTPError = client.request(method, path, json=body)
    except httpx.HTTPError as error:
        response = error
    traffic.record(response)
