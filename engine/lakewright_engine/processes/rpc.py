"""The typed boundary to generated gRPC code, which no other module imports, and calls to the program's functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import (
    alias_pb2,
    callback_pb2,
    callback_pb2_grpc,
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
    status_pb2,
)

from lakewright_engine.model.errors import InitializationError, ProviderError
from lakewright_engine.model.properties import from_struct

MESSAGE_LIMIT = 400 * 1024 * 1024
"""Bytes, as in the SDK."""

_METADATA_LIMIT = 16 * 1024 * 1024
_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # A provider reports an object that did not become ready in the trailers of its response, with the whole object.
    # Go's gRPC, which the plugins use, takes 16 MiB; the default here is 8 KiB, at which the plugin ends the call.
    ("grpc.max_metadata_size", _METADATA_LIMIT),
    ("grpc.absolute_max_metadata_size", _METADATA_LIMIT),
    ("grpc.enable_http_proxy", 0),
    # A program may send all requests at once; the last request waits until earlier requests are done.
    ("grpc.server_max_unrequested_time_in_server", 30 * 60),
]

Message = Any
"""A generated message or stub. Protobuf checks its fields at run time."""

alias_messages: Any = alias_pb2
callback_messages: Any = callback_pb2
engine_messages: Any = engine_pb2
plugin_messages: Any = plugin_pb2
provider_messages: Any = provider_pb2
resource_messages: Any = resource_pb2
EMPTY: Any = Empty()
FAILED: Any = resource_messages.FAIL
EngineServicer: Any = engine_pb2_grpc.EngineServicer
MonitorServicer: Any = resource_pb2_grpc.ResourceMonitorServicer


def channel(address: str) -> Any:
    """Return a channel to an address, without a proxy."""
    return cast("Any", grpc).insecure_channel(address, options=_OPTIONS)


def provider_stub(address_channel: Any) -> Any:
    """Return the client of a provider."""
    return provider_pb2_grpc.ResourceProviderStub(address_channel)


def callbacks_stub(address_channel: Any) -> Any:
    """Return the client of a program's callback server."""
    return callback_pb2_grpc.CallbacksStub(address_channel)


def serve(monitor: Any, engine: Any, address: str, workers: int) -> Any:
    """Serve monitor and engine at an address. Return the server."""

    def add(server: Any) -> None:
        resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
        engine_pb2_grpc.add_EngineServicer_to_server(engine, server)

    return _start(add, address, workers, "monitor")


def serve_engine(engine: Any, address: str, workers: int) -> Any:
    """Serve only an engine at an address. Return the server."""
    return _start(
        lambda server: engine_pb2_grpc.add_EngineServicer_to_server(engine, server), address, workers, "engine"
    )


def _start(add: Callable[[Any], None], address: str, workers: int, name: str) -> Any:
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix=name)
    server = cast("Any", grpc).server(pool, options=_OPTIONS)
    add(server)
    server.add_insecure_port(address)
    server.start()
    return server


def call(method: Any, request: Any, *, callee: str = "the provider") -> Any:
    """Call a provider or the program. Raise ProviderError with the message of the called process."""
    try:
        return method(request)
    except grpc.RpcError as error:
        raise _to_provider_error(cast("Any", error), callee) from None


# A call ends with one of the last two if the provider's process ends.
_AMBIGUOUS = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def _to_provider_error(error: Any, callee: str) -> ProviderError:
    code = error.code()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status: Any = cast("Any", status_pb2).Status.FromString(value)
            for detail in status.details:
                failed: Any = provider_messages.ErrorResourceInitFailed()
                if detail.Is(failed.DESCRIPTOR):
                    detail.Unpack(failed)
                    inputs = from_struct(failed.inputs) if failed.HasField("inputs") else None
                    return InitializationError(list(failed.reasons), failed.id, from_struct(failed.properties), inputs)
    details = str(error.details() or code).strip()
    if code is grpc.StatusCode.UNAVAILABLE:
        details = f"{callee}'s process ended or does not respond ({details})"
    return ProviderError(details, unimplemented=code is grpc.StatusCode.UNIMPLEMENTED, ambiguous=code in _AMBIGUOUS)


def abort_invalid(context: Any, message: str) -> None:
    """Respond to a program's request with an error message."""
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)


def abort_terminated(context: Any) -> None:
    """Respond to a program's request that the deployment has ended. The SDK then ends the program quietly."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "the deployment has ended")


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
                self._channels[callback.target] = channel(callback.target)
            stub = callbacks_stub(self._channels[callback.target])
        message = callback_messages.CallbackInvokeRequest(token=callback.token, request=request.SerializeToString())
        return call(stub.Invoke, message, callee="the program").response
