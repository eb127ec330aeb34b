"""The one place that touches generated gRPC code, whose types are loose: everything else sees these names."""

from __future__ import annotations

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
"""Bytes; the SDK's own limit."""

_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    ("grpc.enable_http_proxy", 0),
    # A program may send everything it has at once; the last of it waits for as long as the rest takes.
    ("grpc.server_max_unrequested_time_in_server", 30 * 60),
]

Message = Any
"""A generated message or stub: its fields are checked by protobuf at run time."""

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
    return cast("Any", grpc).insecure_channel(address, options=_OPTIONS)


def provider_stub(address_channel: Any) -> Any:
    return provider_pb2_grpc.ResourceProviderStub(address_channel)


def callbacks_stub(address_channel: Any) -> Any:
    return callback_pb2_grpc.CallbacksStub(address_channel)


def serve(monitor: Any, engine: Any, address: str, workers: int) -> Any:
    """Serve monitor and engine at an address; return the server."""

    def add(server: Any) -> None:
        resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
        engine_pb2_grpc.add_EngineServicer_to_server(engine, server)

    return _start(add, address, workers, "monitor")


def serve_engine(engine: Any, address: str, workers: int) -> Any:
    """Serve an engine alone, as `serve` does."""
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


def call(method: Any, request: Any, *, whose: str = "the provider") -> Any:
    """Calls a provider, or the program; raises ProviderError in the words of whoever was called."""
    try:
        return method(request)
    except grpc.RpcError as error:
        raise _to_provider_error(cast("Any", error), whose) from None


# The last two: how a call ends whose provider dies under it.
_AMBIGUOUS = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def _to_provider_error(error: Any, whose: str) -> ProviderError:
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
        details = f"{whose}'s process ended or does not answer ({details})"
    return ProviderError(details, unimplemented=code is grpc.StatusCode.UNIMPLEMENTED, ambiguous=code in _AMBIGUOUS)


def abort_invalid(context: Any, message: str) -> None:
    """Answers a program's request with an error that shows `message`."""
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)


def abort_terminated(context: Any) -> None:
    """Tells a program's request that the deployment is over; the SDK ends the program quietly."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "the deployment has ended")
