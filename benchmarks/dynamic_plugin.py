"""The SDK's provider of dynamic resources as a plugin to attach to: it lacks the method that attaching calls."""

import importlib
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer


def _attach(self: ResourceProviderServicer, request: Any, context: Any) -> empty_pb2.Empty:
    _ = self, request, context
    return empty_pb2.Empty()


if __name__ == "__main__":
    ResourceProviderServicer.Attach = _attach
    importlib.import_module("pulumi.dynamic.__main__")
