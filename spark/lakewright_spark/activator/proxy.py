"""A TCP proxy before one unit: connections wait until the unit runs, and silence stops it."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from lakewright_spark.activator.config import IdleUnit
from lakewright_spark.activator.scaling import DeploymentScale, ScalingError

_CHUNK = 65536
_CONNECT_SECONDS = 5
_RETRY_SECONDS = 0.5
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""A lost client is noticed after two minutes. Otherwise its connection would count as use forever."""

logger = logging.getLogger(__name__)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class UnitProxy:
    """The connections of one unit, and its state."""

    def __init__(
        self,
        unit: IdleUnit,
        scale: DeploymentScale,
        *,
        wake_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Count the unit as used now, so that a restarted activator stops nothing too early."""
        self.unit, self._scale, self._wake_seconds, self._clock = unit, scale, wake_seconds, clock
        self._lock = asyncio.Lock()
        self._is_stopped = False
        self._last_traffic = clock()
        self._clients: set[asyncio.StreamWriter] = set()

    async def serve(self, client: asyncio.StreamReader, responses: asyncio.StreamWriter) -> None:
        """Forward a connection to the unit, which is started if it does not run."""
        with suppress(OSError):
            _notice_lost_clients(responses)
            # A connection without a byte is a port scan or a probe, which must not start the unit.
            if first := await client.read(_CHUNK):
                with self._track_client(responses):
                    if upstream := await self._reach():
                        await self._forward((client, responses), upstream, first)
        await _close(responses)

    async def stop_if_idle(self) -> None:
        """Stop the unit if there was no traffic for its time. Raises ScalingError."""
        if not self._is_idle():
            return
        async with self._lock:
            if await self._scale.read() == 0 or not self._is_idle():
                return
            if self._is_stopped:
                # A user started it.
                self._is_stopped, self._last_traffic = False, self._clock()
                return
            # Set before the call: connections from now on start the unit again.
            self._is_stopped, idle_clients = True, list(self._clients)
            try:
                await self._scale.write(0)
            except ScalingError:
                self._is_stopped = False
                raise
        logger.info("%s: stopped after %d s without traffic", self.unit.deployment, self.unit.idle_seconds)
        for client in idle_clients:
            client.close()

    def _is_idle(self) -> bool:
        if self._clients and self.unit.open_connections_count:
            return False
        return self._clock() - self._last_traffic >= self.unit.idle_seconds

    @contextmanager
    def _track_client(self, client: asyncio.StreamWriter) -> Generator[None]:
        self._clients.add(client)
        self._last_traffic = self._clock()
        try:
            yield
        finally:
            self._clients.discard(client)
            self._last_traffic = self._clock()

    async def _reach(self) -> Streams | None:
        """Return a connection to the unit; None if it does not start in time."""
        deadline = self._clock() + self._wake_seconds
        while self._clock() < deadline:
            self._last_traffic = self._clock()
            if not self._is_stopped:
                with suppress(OSError, TimeoutError):
                    connecting = asyncio.open_connection(self.unit.host, self.unit.port)
                    return await asyncio.wait_for(connecting, _CONNECT_SECONDS)
            try:
                await self._start()
            except ScalingError as error:
                logger.warning("%s: cannot be started: %s", self.unit.deployment, error)
            await asyncio.sleep(_RETRY_SECONDS)
        logger.warning("%s: did not start within %d s", self.unit.deployment, self._wake_seconds)
        return None

    async def _start(self) -> None:
        async with self._lock:
            if await self._scale.read() == 0:
                await self._scale.write(1)
                logger.info("%s: started on use", self.unit.deployment)
            self._is_stopped = False

    async def _forward(self, client: Streams, upstream: Streams, first: bytes) -> None:
        upstream[1].write(first)
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._copy(client[0], upstream[1]))
                directions.create_task(self._copy(upstream[0], client[1]))
        except* OSError as lost:
            logger.debug("%s: connection lost: %s", self.unit.deployment, lost.exceptions[0])
        finally:
            await _close(upstream[1])

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Copy until the source ends, then close the target for writing. The other direction may continue."""
        while chunk := await source.read(_CHUNK):
            self._last_traffic = self._clock()
            target.write(chunk)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()


def _notice_lost_clients(client: asyncio.StreamWriter) -> None:
    connection: socket.socket = client.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        # macOS has not all of them.
        if (option := getattr(socket, name, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
