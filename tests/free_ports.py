"""Ports for servers that get their port as an option and start later."""

from __future__ import annotations

import contextlib
import random
import socket

_PORTS = range(12_000, 20_000)
"""Below the ports of sandboxes (from 20000 on) and the ports that Linux gives to clients (32768 to 60999): another
process could get such a port between its choice and the start of its server."""


def find_free_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    # Workers run at the same time: with seeds of their own, they choose different ports.
    for port in random.SystemRandom().sample(_PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"100 ports of {_PORTS} are taken")
