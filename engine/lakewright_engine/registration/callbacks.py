"""Calls to functions of the program, such as transforms and hooks, through the program's callback server."""

from __future__ import annotations

import threading
from typing import Any

from lakewright_engine.processes import rpc


class Callbacks:
    """Calls functions of the program, with one channel for each callback server. Thread-safe."""

    def __init__(self) -> None:
        """Start without channels."""
        self._lock = threading.Lock()
        self._channels: dict[str, Any] = {}

    def call(self, callback: Any, request: Any) -> bytes:
        """Call a function of the program and return its response. Raise ProviderError if the call fails."""
        with self._lock:
            if callback.target not in self._channels:
                self._channels[callback.target] = rpc.channel(callback.target)
            stub = rpc.callbacks_stub(self._channels[callback.target])
        message = rpc.callback_messages.CallbackInvokeRequest(token=callback.token, request=request.SerializeToString())
        return rpc.call(stub.Invoke, message, callee="the program").response
