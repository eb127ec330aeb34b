"""Listen for all units of a configuration, and stop units without traffic."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import ExitStack

from lakewright_spark.activator.config import ActivatorConfig, IdleUnit
from lakewright_spark.activator.proxy import UnitProxy
from lakewright_spark.activator.scaling import DeploymentScale, ScalingError

_LONGEST_CHECK_SECONDS = 15.0

logger = logging.getLogger(__name__)


async def run(config: ActivatorConfig, build_scale: Callable[[IdleUnit], DeploymentScale]) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        config: The units.
        build_scale: Returns how a unit is started and stopped.
    """
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    proxies = [UnitProxy(unit, build_scale(unit), wake_seconds=config.wake_seconds) for unit in config.units]
    with ExitStack() as stack:
        for proxy in proxies:
            server = await asyncio.start_server(proxy.serve, config.address, proxy.unit.listen)
            stack.callback(server.close)
        health = await asyncio.start_server(_respond_to_probe, config.address, config.health_port)
        stack.callback(health.close)
        watchers = [asyncio.create_task(_watch(proxy)) for proxy in proxies]
        logger.info("serving %s", ", ".join(unit.deployment for unit in config.units))
        await ended.wait()
        for watcher in watchers:
            watcher.cancel()


async def _watch(proxy: UnitProxy) -> None:
    """Stop a unit whenever it is idle."""
    seconds = min(proxy.unit.idle_seconds / 4, _LONGEST_CHECK_SECONDS)
    while True:
        await asyncio.sleep(seconds)
        try:
            await proxy.stop_if_idle()
        except ScalingError as error:
            logger.warning("%s: cannot be stopped: %s", proxy.unit.deployment, error)


async def _respond_to_probe(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
    await asyncio.sleep(0)
