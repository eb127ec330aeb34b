"""The activator before a stand-in unit: a real TCP server that runs while its scale is above zero."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lakewright_spark.activator.config import ActivatorConfig, IdleUnit, load_activator_config
from lakewright_spark.activator.proxy import UnitProxy
from lakewright_spark.activator.scaling import ScalingError
from lakewright_spark.errors import ConfigMissingError

IDLE = 600.0


class EchoUnit:
    """A unit that echoes, with its scale."""

    def __init__(self) -> None:
        self.port = 0
        self.writes: list[int] = []
        self.refusals = 0
        self.during_stop: Callable[[], Coroutine[None, None, None]] | None = None
        """Called before the unit is stopped."""
        self._server: asyncio.Server | None = None

    async def read(self) -> int:
        return 0 if self._server is None else 1

    async def write(self, replicas: int) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ScalingError("the Kubernetes API responded with 403 Forbidden")
        if not replicas and self.during_stop:
            await self.during_stop()
        self.writes.append(replicas)
        if replicas:
            self._server = await asyncio.start_server(self._echo, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]
        elif self._server:
            self._server.close()
            self._server = None

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1000):
            writer.write(chunk)
        writer.close()


class ProxiedUnit:
    """A proxy on a port, its unit, and a clock."""

    def __init__(self, unit: EchoUnit, proxy: UnitProxy, port: int) -> None:
        self.unit, self.proxy, self.port = unit, proxy, port

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def serve_idle_unit(
    clock: Callable[[], float], *, wake: float = 30, counts_open: bool = False
) -> AsyncIterator[ProxiedUnit]:
    unit = EchoUnit()
    await unit.write(1)
    idle = IdleUnit(
        deployment="notebook",
        listen=1,
        host="127.0.0.1",
        port=unit.port,
        idle_seconds=IDLE,
        open_connections_count=counts_open,
    )
    proxy = UnitProxy(idle, unit, wake_seconds=wake, clock=clock)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        yield ProxiedUnit(unit, proxy, server.sockets[0].getsockname()[1])


async def echo(proxied: ProxiedUnit, text: bytes) -> bytes:
    """Send text on a new connection, and return what comes back."""
    reader, writer = await proxied.connect()
    writer.write(text)
    writer.write_eof()
    response = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return response


def check(case: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(case())


class ProxyClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silent_unit_is_stopped_and_started_on_use() -> None:
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            assert await echo(proxied, b"hello") == b"hello"
            clock.now += IDLE - 1
            await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == [1], "its time is not over"
            clock.now += 1
            await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == [1, 0]

            assert await echo(proxied, b"again") == b"again"
            assert proxied.unit.writes == [1, 0, 1]

    check(case)


def test_connection_without_bytes_starts_nothing() -> None:
    """Port scans and the probes of load balancers connect and send nothing."""
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            clock.now += IDLE
            await proxied.proxy.stop_if_idle()
            assert await echo(proxied, b"") == b""
            assert proxied.unit.writes == [1, 0]

    check(case)


def test_traffic_keeps_a_unit_running() -> None:
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            reader, writer = await proxied.connect()
            for _ in range(3):
                clock.now += IDLE - 1
                writer.write(b"x")
                assert await reader.readexactly(1) == b"x"
                await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == [1]
            writer.close()

    check(case)


@pytest.mark.parametrize(("counts_open", "writes"), [(False, [1, 0]), (True, [1])])
def test_open_connections_count_where_they_should(counts_open: bool, writes: list[int]) -> None:  # noqa: FBT001
    """A Connect session may be left open for days; an open workflow of Texera is in use."""
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock, counts_open=counts_open) as proxied:
            reader, writer = await proxied.connect()
            writer.write(b"x")
            await reader.readexactly(1)
            clock.now += IDLE
            await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == writes
            if not counts_open:
                assert await asyncio.wait_for(reader.read(), 20) == b"", "the client learns that its session is gone"
            writer.close()

    check(case)


def test_client_that_arrives_during_a_stop_is_served() -> None:
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            clock.now += IDLE
            responses: list[asyncio.Task[bytes]] = []

            async def connect_client() -> None:
                responses.append(asyncio.create_task(echo(proxied, b"hello")))
                while not proxied.proxy._clients:
                    await asyncio.sleep(0)

            proxied.unit.during_stop = connect_client
            await proxied.proxy.stop_if_idle()

            assert await responses[0] == b"hello"
            assert proxied.unit.writes == [1, 0, 1]

    check(case)


def test_lost_client_is_noticed() -> None:
    """A client whose machine vanished sends nothing, not even an end."""

    async def case() -> None:
        async with serve_idle_unit(ProxyClock(), counts_open=True) as proxied:
            reader, writer = await proxied.connect()
            writer.write(b"x")
            await reader.readexactly(1)
            (client,) = proxied.proxy._clients
            connection = client.get_extra_info("socket")
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
            writer.close()

    check(case)


def test_unit_that_a_user_starts_has_its_full_time() -> None:
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            clock.now += IDLE
            await proxied.proxy.stop_if_idle()
            await proxied.unit.write(1)
            await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == [1, 0, 1]
            clock.now += IDLE
            await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == [1, 0, 1, 0]

    check(case)


def test_refused_stop_is_tried_again() -> None:
    """The unit still runs, and no user started it."""
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            clock.now += IDLE
            proxied.unit.refusals = 1
            with pytest.raises(ScalingError, match="403 Forbidden"):
                await proxied.proxy.stop_if_idle()
            await proxied.proxy.stop_if_idle()
            assert proxied.unit.writes == [1, 0]

    check(case)


def test_refused_start_is_tried_again() -> None:
    clock = ProxyClock()

    async def case() -> None:
        async with serve_idle_unit(clock) as proxied:
            clock.now += IDLE
            await proxied.proxy.stop_if_idle()
            proxied.unit.refusals = 1
            assert await echo(proxied, b"hello") == b"hello"

    check(case)


def test_connection_ends_if_the_unit_does_not_start() -> None:
    ticks = iter(range(1000))

    async def case() -> None:
        async with serve_idle_unit(lambda: float(next(ticks)), wake=10) as proxied:
            await proxied.unit.write(0)
            proxied.unit.refusals = 1000
            assert await echo(proxied, b"hello") == b""

    check(case)


def test_configuration_with_a_mistake_is_refused_by_place(tmp_path: Path) -> None:
    file = tmp_path / "activator.json"
    file.write_text('{"namespace": "tenant-a", "health_port": 8079, "units": [{"deployment": "x"}]}')

    with pytest.raises(ConfigMissingError, match=r"units\.0\.listen"):
        load_activator_config(file)


def test_configuration_is_read(tmp_path: Path) -> None:
    unit = IdleUnit(deployment="notebook", listen=20000, host="notebook.computing-units", port=15002, idle_seconds=60)
    config = ActivatorConfig(namespace="tenant-a", health_port=8079, units=(unit,))
    file = tmp_path / "activator.json"
    file.write_text(config.model_dump_json())

    assert load_activator_config(file) == config
