"""Identify the user of a calling process: users of the machine share its loopback interface."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"
"""Prefix of IPv4 addresses in the table of IPv6 connections."""
_ESTABLISHED = "01"
"""The only state with a reliable user: the sockets of ended connections belong to root."""


class SameUserOnly(grpc.ServerInterceptor):
    """Refuse calls from processes of other users.

    The user is looked up at every call: the port of a closed connection may soon be another user's. On systems that do
    not list their connections (other than Linux), calls of every local user are accepted.
    """

    def __init__(self) -> None:
        """Start without a port."""
        self.port = 0
        """The served port, set when it is known."""

    def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Wrap the handler of a call."""
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        serve = handler.unary_unary

        def check_caller(request: Any, context: grpc.ServicerContext) -> Any:
            if lists_connections() and caller_uid(context.peer(), self.port) != os.getuid():
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "only the user who started this provider may call it")
            return serve(request, context)

        return grpc.unary_unary_rpc_method_handler(
            check_caller,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def lists_connections() -> bool:
    """Return whether this system lists the users of connections."""
    return _TABLES[0].exists()


def caller_uid(peer: str, port: int) -> int | None:
    """Return the id of the user behind a connection.

    Args:
        peer: The caller as gRPC names it, `ipv4:127.0.0.1:40000`.
        port: The port that was called.

    Returns:
        The user id; None where no such connection is open.
    """
    address, _, local_port = peer.removeprefix("ipv4:").rpartition(":")
    number = int.from_bytes(socket.inet_aton(address), sys.byteorder)
    local_addresses = {f"{form}{number:08X}:{int(local_port):04X}" for form in ("", _MAPPED)}
    for table in _TABLES:
        rows = [row.split() for row in table.read_text(encoding="ascii").splitlines()[1:]] if table.exists() else []
        for _, local, remote, state, _, _, _, uid, *_ in rows:
            if local in local_addresses and state == _ESTABLISHED and int(remote.rpartition(":")[2], 16) == port:
                return int(uid)
    return None
