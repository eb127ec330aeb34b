"""Messages between a command and the warm process reach the other end, however fast it responds."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

import pytest
from lakewright.warm import messages


def test_response_is_received_after_the_other_end_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other end may read the whole message, decline it and close before the sender continues."""
    caller, process = socket.socketpair()
    send_files = socket.send_fds

    def send_and_be_declined(connection: socket.socket, parts: Sequence[bytes], descriptors: list[int]) -> int:
        sent = send_files(connection, parts, descriptors)
        request, files = messages.receive(process, descriptors=3)
        assert request == {"arguments": ["up"]}
        messages.send(process, {"declined": True})
        process.close()
        for descriptor in files:
            os.close(descriptor)
        return sent

    monkeypatch.setattr(socket, "send_fds", send_and_be_declined)
    with caller:
        messages.send(caller, {"arguments": ["up"]}, (0, 1, 2))

        assert list(messages.receive_all(caller)) == [{"declined": True}]
