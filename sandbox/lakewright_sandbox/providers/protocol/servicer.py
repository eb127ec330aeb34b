"""Pulumi's ResourceProvider service over gRPC for any `ProviderPackage`.

One server serves several provider instances, each on its own connection, so the configuration is kept by connection.
Cancel ends one instance; the server runs until its process ends.
"""
# ruff: noqa: N802, ARG002  The methods' names and parameters are Pulumi's.

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc

from lakewright_sandbox.providers.protocol.callers import SameUserOnly
from lakewright_sandbox.providers.protocol.difference import ResourceDifference, compare
from lakewright_sandbox.providers.protocol.errors import MaybeCreatedError, NotConfiguredError, SandboxProviderError
from lakewright_sandbox.providers.protocol.properties import (
    Properties,
    contains_secret,
    drop_internal,
    from_struct,
    reveal,
    to_struct,
)

# A resource's properties may hold whole manifests; Pulumi's own limit is 400 MB.
_MESSAGE_LIMIT = 400 * 1024 * 1024
_OPTIONS = [("grpc.max_receive_message_length", _MESSAGE_LIMIT), ("grpc.max_send_message_length", _MESSAGE_LIMIT)]

_KINDS = {
    ("add", False): provider_pb2.PropertyDiff.ADD,
    ("add", True): provider_pb2.PropertyDiff.ADD_REPLACE,
    ("delete", False): provider_pb2.PropertyDiff.DELETE,
    ("delete", True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    ("update", False): provider_pb2.PropertyDiff.UPDATE,
    ("update", True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


@dataclass(frozen=True)
class PropertyFailure:
    """A refused input and the reason."""

    property: str
    reason: str


@dataclass(frozen=True)
class ResourceRef:
    """The resource that a call is about."""

    urn: str
    type: str
    id: str = ""
    ignore_changes: tuple[str, ...] = ()
    """The paths that this call must not change."""

    @property
    def name(self) -> str:
        """Return the name that the program gave the resource."""
        return self.urn.rsplit("::", 1)[-1]


@dataclass(frozen=True)
class LiveResource:
    """The result of Read: the object's id, its state, and the inputs that produce that state."""

    id: str
    outputs: Properties
    inputs: Properties


class Instance(Protocol):
    """A configured provider. Properties arrive without secret wrapping; unknowns are `UNKNOWN`."""

    @property
    def plain_text_warning(self) -> str | None:
        """Return the warning for resources whose inputs contain a secret."""
        ...

    def check(
        self, resource: ResourceRef, olds: Properties, news: Properties, seed: bytes
    ) -> tuple[Properties, list[PropertyFailure]]:
        """Return normalized inputs, and failures for refused inputs."""
        ...

    def diff(
        self, resource: ResourceRef, olds: Properties, news: Properties, old_inputs: Properties
    ) -> ResourceDifference:
        """Return the difference between the state and new inputs."""
        ...

    def preview_create(self, resource: ResourceRef, inputs: Properties) -> Properties:
        """Return the expected state of a create; unknown where it is not known yet."""
        ...

    def create(self, resource: ResourceRef, inputs: Properties) -> tuple[str, Properties]:
        """Create the object; return its id and state."""
        ...

    def read(self, resource: ResourceRef, olds: Properties, old_inputs: Properties) -> LiveResource | None:
        """Return the live object, None if it does not exist."""
        ...

    def preview_update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Return the expected state of an update."""
        ...

    def update(self, resource: ResourceRef, olds: Properties, news: Properties) -> Properties:
        """Update the object; return its state."""
        ...

    def delete(self, resource: ResourceRef, olds: Properties) -> None:
        """Delete the object if it exists."""
        ...

    def invoke(self, token: str, args: Properties) -> Properties:
        """Call a function of the provider."""
        ...

    def mark_secrets(self, properties: Properties, raw_inputs: Properties) -> Properties:
        """Return properties marked secret as the inputs are."""
        ...


class ProviderPackage(Protocol):
    """A provider package: its name, its configuration, and how instances are created."""

    name: str
    version: str
    replacing_config: frozenset[str]

    def check_config(self, config: Properties) -> list[PropertyFailure]:
        """Return failures for refused configuration."""
        ...

    def configure(self, config: Properties) -> Instance:
        """Return a provider instance for a configuration."""
        ...


Call = TypeVar("Call", bound=Callable[..., Any])


def _as_grpc_errors(call: Call) -> Call:
    """Let a SandboxProviderError end the call with its message; any other error keeps its traceback on stderr.

    DEADLINE_EXCEEDED tells the engine that the object may exist, so that it keeps the create as pending.
    """

    @functools.wraps(call)
    def wrapper(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return call(self, request, context)
        except MaybeCreatedError as error:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, str(error))
            raise
        except SandboxProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
            raise

    return cast("Call", wrapper)


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Pulumi's ResourceProvider service over one package."""

    def __init__(self, package: ProviderPackage) -> None:
        """Serve a package."""
        self._package = package
        self._instances: dict[str, Instance] = {}
        self._engines: dict[str, str] = {}

    def _instance(self, context: grpc.ServicerContext) -> Instance:
        instance = self._instances.get(context.peer())
        if instance is None:
            raise NotConfiguredError(
                f"the sandbox's {self._package.name} provider got a resource before its configuration on this "
                "connection; run the command again"
            )
        return instance

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ProviderHandshakeResponse:
        """Store the engine's address."""
        self._engines[context.peer()] = request.engine_address
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Store the address of the engine that attaches to a running provider."""
        self._engines[context.peer()] = request.address
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Return the provider's version."""
        return plugin_pb2.PluginInfo(version=self._package.version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.GetSchemaResponse:
        """Return a schema with the package's name and version alone."""
        schema = {"name": self._package.name, "version": self._package.version}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    @_as_grpc_errors
    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """Validate the provider's configuration."""
        failures = self._package.check_config(reveal(from_struct(request.news)))
        return provider_pb2.CheckResponse(inputs=request.news, failures=_failures(failures))

    @_as_grpc_errors
    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Compare two configurations of the provider."""
        old, new = (drop_internal(reveal(from_struct(side))) for side in (request.olds, request.news))
        changes = compare(old, new)
        # The version of the SDK that wrote the state does not change the provider's target.
        changes.pop("version", None)
        return _diff_response(ResourceDifference(changes, self._package.replacing_config & changes.keys()))

    @_as_grpc_errors
    def Configure(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ConfigureResponse:
        """Create the provider instance of this connection."""
        config = drop_internal(reveal(from_struct(request.args)))
        prefix = f"{self._package.name}:config:"
        for key, value in request.variables.items():
            config.setdefault(key.removeprefix(prefix), value)
        self._instances[context.peer()] = self._package.configure(config)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    @_as_grpc_errors
    def Check(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """Validate and normalize the inputs of a resource."""
        raw = from_struct(request.news)
        instance, resource = self._instance(context), _subject(request)
        inputs, failures = instance.check(resource, reveal(from_struct(request.olds)), reveal(raw), request.randomSeed)
        if instance.plain_text_warning and contains_secret(raw):
            self._warn(context, resource, instance.plain_text_warning)
        return provider_pb2.CheckResponse(
            inputs=to_struct(instance.mark_secrets(inputs, raw)), failures=_failures(failures)
        )

    @_as_grpc_errors
    def Diff(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Compare the state of a resource with new inputs."""
        olds, news, old_inputs = (reveal(from_struct(p)) for p in (request.olds, request.news, request.old_inputs))
        resource = _subject(request)
        difference = self._instance(context).diff(resource, olds, news, old_inputs)
        return _diff_response(difference.drop_ignored(list(resource.ignore_changes)))

    @_as_grpc_errors
    def Create(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        """Create a resource, or preview that."""
        raw, resource, instance = from_struct(request.properties), _subject(request), self._instance(context)
        if request.preview:
            resource_id, outputs = "", instance.preview_create(resource, reveal(raw))
        else:
            resource_id, outputs = instance.create(resource, reveal(raw))
        return provider_pb2.CreateResponse(id=resource_id, properties=to_struct(instance.mark_secrets(outputs, raw)))

    @_as_grpc_errors
    def Read(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """Read the live state of a resource."""
        raw, instance = from_struct(request.inputs), self._instance(context)
        live = instance.read(_subject(request), reveal(from_struct(request.properties)), reveal(raw))
        if live is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=live.id,
            properties=to_struct(instance.mark_secrets(live.outputs, raw)),
            inputs=to_struct(instance.mark_secrets(live.inputs, raw)),
        )

    @_as_grpc_errors
    def Update(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        """Update a resource, or preview that."""
        raw, olds, instance = from_struct(request.news), reveal(from_struct(request.olds)), self._instance(context)
        change = instance.preview_update if request.preview else instance.update
        outputs = change(_subject(request), olds, reveal(raw))
        return provider_pb2.UpdateResponse(properties=to_struct(instance.mark_secrets(outputs, raw)))

    @_as_grpc_errors
    def Delete(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Delete a resource."""
        self._instance(context).delete(_subject(request), reveal(from_struct(request.properties)))
        return empty_pb2.Empty()

    @_as_grpc_errors
    def Invoke(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        """Call a function."""
        result = self._instance(context).invoke(request.tok, reveal(from_struct(request.args)))
        response = provider_pb2.InvokeResponse()
        # The field is called `return`, which is a keyword in Python.
        getattr(response, "return").CopyFrom(to_struct(result))
        return response

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Forget the provider instance of this connection."""
        self._instances.pop(context.peer(), None)
        self._engines.pop(context.peer(), None)
        return empty_pb2.Empty()

    def _warn(self, context: grpc.ServicerContext, resource: ResourceRef, message: str) -> None:
        """Log a warning about the resource to the engine, if its address is known."""
        if not (address := self._engines.get(context.peer())):
            return
        with grpc.insecure_channel(address) as channel:
            request = engine_pb2.LogRequest(severity=engine_pb2.WARNING, message=message, urn=resource.urn)
            engine: Any = engine_pb2_grpc.EngineStub(channel)
            engine.Log(request, timeout=5)


def serve(package: ProviderPackage, port: int = 0, address: str = "") -> tuple[grpc.Server, int]:
    """Start a server on a loopback port for calls of this user alone, or at another gRPC address.

    Args:
        package: The provider to serve.
        port: The port, 0 for a free port.
        address: A gRPC address instead of a port.

    Returns:
        The server and its port.

    Raises:
        SandboxProviderError: It cannot listen there.
    """
    same_user = SameUserOnly()
    interceptors: list[grpc.ServerInterceptor] = [] if address else [same_user]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), interceptors=interceptors, options=_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(package), server)
    try:
        bound = server.add_insecure_port(address or f"127.0.0.1:{port}")
    except RuntimeError as error:
        if address:
            raise SandboxProviderError(f"cannot listen at {address}: {error}") from error
        raise SandboxProviderError(f"port {port} of 127.0.0.1 is taken; choose another with --port") from error
    same_user.port = bound
    server.start()
    return server, bound


def _subject(request: Any) -> ResourceRef:
    kind = request.type or request.urn.split("::")[2].rsplit("$", 1)[-1]
    # Some requests have no id and no ignored paths.
    ignored_paths = tuple[str, ...](getattr(request, "ignoreChanges", ()))
    return ResourceRef(request.urn, kind, getattr(request, "id", ""), ignored_paths)


def _failures(failures: list[PropertyFailure]) -> list[provider_pb2.CheckFailure]:
    return [provider_pb2.CheckFailure(property=f.property, reason=f.reason) for f in failures]


def _diff_response(difference: ResourceDifference) -> provider_pb2.DiffResponse:
    changed = provider_pb2.DiffResponse.DIFF_SOME if difference.changes else provider_pb2.DiffResponse.DIFF_NONE
    return provider_pb2.DiffResponse(
        changes=changed,
        replaces=sorted(difference.replaces),
        deleteBeforeReplace=difference.delete_before_replace and bool(difference.replaces),
        diffs=sorted({path.replace("[", ".").split(".")[0] for path in difference.changes}),
        detailedDiff={
            path: provider_pb2.PropertyDiff(kind=_KINDS[change, path in difference.replaces])
            for path, change in difference.changes.items()
        },
        hasDetailedDiff=True,
    )
