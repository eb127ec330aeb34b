"""Probes of containers, as a kubelet makes them: from outside the pod, to its address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import grpc
import httpx

_SERVING = b"\x08\x01"
"""A HealthCheckResponse (grpc.health.v1) with the status SERVING."""


def run_probe(probe: dict[str, Any], address: str) -> bool:
    """Return whether a probe succeeds. Fails for a probe that the process cluster does not know."""
    (kind,) = probe.keys() & _KINDS.keys()
    try:
        return _KINDS[kind](probe[kind], address, probe.get("timeoutSeconds", 1))
    except (httpx.HTTPError, OSError, grpc.RpcError):
        return False


def _probe_http(action: dict[str, Any], address: str, timeout: float) -> bool:
    url = f"{action.get('scheme', 'HTTP').lower()}://{address}:{action['port']}{action['path']}"
    response = httpx.get(url, timeout=timeout, verify=False, trust_env=False)
    return 200 <= response.status_code < 400


def _probe_tcp(action: dict[str, Any], address: str, timeout: float) -> bool:
    socket.create_connection((address, action["port"]), timeout).close()
    return True


def _probe_grpc(action: dict[str, Any], address: str, timeout: float) -> bool:
    with grpc.insecure_channel(f"{address}:{action['port']}") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        return check(b"", timeout=timeout) == _SERVING


_KINDS: dict[str, Callable[[dict[str, Any], str, float], bool]] = {
    "httpGet": _probe_http,
    "tcpSocket": _probe_tcp,
    "grpc": _probe_grpc,
}
