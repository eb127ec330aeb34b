"""Messages between a command and the warm process: JSON objects, one a line, over a Unix socket."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CREDENTIALS = struct.Struct("3i")


def read_peer_user(connection: socket.socket) -> int:
    """Return the id of the user at the other end."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(raw)[1]


def send(connection: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message, and open files with it. Raises OSError where the other end is closed."""
    data = json.dumps(message).encode() + b"\n"
    sent = socket.send_fds(connection, [data], list(descriptors)) if descriptors else 0
    if sent < len(data):  # sending no bytes fails where the other end has read the message, responded and closed
        connection.sendall(data[sent:])


def receive(connection: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next message and the open files that came with it; None where the other end is closed.

    Only for an end that sends one message and waits: data after the line is lost.
    """
    data, files = b"", list[int]()
    try:
        while not data.endswith(b"\n"):
            part, received, _, _ = socket.recv_fds(connection, 65536, descriptors)
            files += received
            if not part:
                raise ConnectionResetError
            data += part
    except ConnectionError:
        for descriptor in files:
            os.close(descriptor)
        return None, []
    return json.loads(data), files


def receive_all(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """Yield messages until the other end is closed."""
    data = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionError:
            return
        if not part:
            return
        *lines, data = (data + part).split(b"\n")
        for line in lines:
            yield json.loads(line)
