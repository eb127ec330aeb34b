"""Functions of the program that the engine calls: transforms and hooks, by way of the program's own callback server."""

from __future__ import annotations

import threading
from typing import Any

from lakewright_engine.processes import rpc


class Callbacks:
    """Thread-safe; keeps one channel for each callback server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: dict[str, Any] = {}

    def call(self, callback: Any, request: Any) -> bytes:
        """Has the program answer the request; raises ProviderError if it does not."""
        with self._lock:
            if callback.target not in self._channels:
                self._channels[callback.target] = rpc.channel(callback.target)
            stub = rpc.callbacks_stub(self._channels[callback.target])
        message = rpc.callback_messages.CallbackInvokeRequest(token=callback.token, request=request.SerializeToString())
        return rpc.call(stub.Invoke, message, whose="the program").response
