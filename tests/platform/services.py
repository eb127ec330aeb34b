"""Services: each has an address, at which a proxy forwards new connections to the ready pods in turn.

As with kube-proxy, a pod that begins to terminate gets new connections for a moment, and keeps those it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from tests.platform.pod import Pod

PROPAGATION_SECONDS = 1.0
"""Time until a Service no longer forwards to a pod that terminates or is not ready."""


class ServiceProxy:
    """Forwards connections of all Services, in one thread."""

    def __init__(self) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def serve(self, address: str, port: int, target_port: int, list_pods: Callable[[], list[Pod]]) -> None:
        """Forward an address to the pods that a function returns."""
        service = _Service(target_port, list_pods)
        starting = asyncio.start_server(service.forward, address, port)
        asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)


class _Service:
    def __init__(self, port: int, list_pods: Callable[[], list[Pod]]) -> None:
        self._port, self._list_pods, self._turn = port, list_pods, 0

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection; close it if no pod is ready."""
        if pods := [pod for pod in self._list_pods() if _gets_connections(pod)]:
            self._turn += 1
            pod = pods[self._turn % len(pods)]
            with contextlib.suppress(OSError):
                upstream = await asyncio.open_connection(pod.address, self._port)
                await asyncio.gather(_copy(reader, upstream[1]), _copy(upstream[0], writer))
        writer.close()


def _gets_connections(pod: Pod) -> bool:
    if pod.ready_since is None:
        return False
    return pod.terminating_since is None or time.monotonic() - pod.terminating_since < PROPAGATION_SECONDS


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of one direction, then close the other side."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
