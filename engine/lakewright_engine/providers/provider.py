"""A client of Pulumi's provider protocol: a method for each call, with property values of the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lakewright_engine.model.assets import restore_contents
from lakewright_engine.model.errors import InitializationError, ProviderError
from lakewright_engine.model.properties import (
    flatten_references,
    from_struct,
    has_unknown,
    mark_secrets,
    plaintext,
    plaintext_properties,
    to_struct,
)
from lakewright_engine.model.resources import Properties, ResourceState, Value
from lakewright_engine.model.step import Diff
from lakewright_engine.model.urns import urn_name, urn_type
from lakewright_engine.processes import rpc

_KINDS: tuple[str, ...] = ("add", "add-replace", "delete", "delete-replace", "update", "update-replace")


@dataclass(frozen=True)
class InputFailure:
    """An input that a provider rejects. An empty `property` means the whole resource."""

    property: str
    reason: str


@dataclass(frozen=True)
class ReadResult:
    """The result of a read. `id` is empty if the object does not exist."""

    id: str
    outputs: Properties
    inputs: Properties | None


def public_config(inputs: Properties) -> Properties:
    """Return a provider's inputs without the engine's internal inputs."""
    return {key: value for key, value in inputs.items() if key != "__internal"}


class Provider:
    """A started provider. Its methods raise ProviderError if the provider rejects a call."""

    def __init__(self, package: str, stub: Any, describe_end: Callable[[], str] = str) -> None:
        """Create a client of a started provider.

        Args:
            package: The name of its package.
            stub: The gRPC client.
            describe_end: Returns a sentence about the end of its process; empty if it runs or is not known.
        """
        self.package = package
        self._stub = stub
        self._describe_end = describe_end
        self._negotiated = False
        self._secrets = False
        self._references = False
        self._preview = False
        self._known = True

    def handshake(self, engine: str, root: str | None, program: str | None) -> None:
        """Negotiate the protocol. `engine` is the engine's address; unknown folders are None."""
        response = self._call_optional(
            self._stub.Handshake,
            rpc.provider_messages.ProviderHandshakeRequest(
                engine_address=engine, root_directory=root, program_directory=program, configure_with_urn=True
            ),
        )
        if response is not None:
            self._negotiated = True
            self._secrets = response.accept_secrets
            self._references = response.accept_resources
            self._preview = True

    def check_config(self, urn: str, olds: Properties, news: Properties) -> tuple[Properties, list[InputFailure]]:
        """Check the provider's own configuration. Return the checked inputs and the failures."""
        request = rpc.provider_messages.CheckRequest(
            urn=urn,
            olds=to_struct(plaintext_properties(olds)),
            news=to_struct(plaintext_properties(news)),
            name=urn_name(urn),
            type=urn_type(urn),
        )
        response = self._call_optional(self._stub.CheckConfig, request)
        if response is None:
            return news, []
        checked = mark_secrets(from_struct(response.inputs), news)
        return checked, [InputFailure(item.property, item.reason) for item in response.failures]

    def diff_config(self, urn: str, old_inputs: Properties, old_outputs: Properties, news: Properties) -> Diff:
        """Compare the provider's own configuration."""
        request = rpc.provider_messages.DiffRequest(
            urn=urn,
            olds=to_struct(plaintext_properties(old_outputs)),
            news=to_struct(plaintext_properties(news)),
            old_inputs=to_struct(plaintext_properties(old_inputs)),
            name=urn_name(urn),
            type=urn_type(urn),
        )
        response = self._call_optional(self._stub.DiffConfig, request)
        return Diff("unknown") if response is None else _diff(response)

    def configure(self, urn: str, object_id: str, inputs: Properties) -> None:
        """Configure the provider, unless a preview does not know the configuration yet."""
        self._known = not has_unknown(dict(inputs))
        if not self._known:
            return
        variables = {f"{self.package}:config:{key}": _text(value) for key, value in inputs.items() if key != "version"}
        response = self._call(
            self._stub.Configure,
            rpc.provider_messages.ConfigureRequest(
                variables=variables,
                args=to_struct(inputs),
                acceptSecrets=True,
                acceptResources=True,
                sends_old_inputs=True,
                sends_old_inputs_to_delete=True,
                id=object_id,
                urn=urn,
                name=urn_name(urn),
                type=urn_type(urn),
            ),
        )
        if not self._negotiated:
            self._secrets = response.acceptSecrets
            self._references = response.acceptResources
            self._preview = response.supportsPreview

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> tuple[Properties, list[InputFailure]]:
        """Check a resource's inputs. Return the checked inputs and the failures.

        The provider makes random values, such as a name, from the `seed`.
        """
        if not self._known:
            return news, []
        request = rpc.provider_messages.CheckRequest(
            urn=urn,
            olds=self._out(olds),
            news=self._out(news),
            randomSeed=seed,
            name=urn_name(urn),
            type=urn_type(urn),
        )
        response = self._call(self._stub.Check, request)
        checked = self._read_properties(response.inputs, news)
        return checked, [InputFailure(item.property, item.reason) for item in response.failures]

    def diff(self, urn: str, old: ResourceState, news: Properties, ignore: list[str]) -> Diff:
        """Compare a resource's state with new inputs."""
        if not self._known:
            return Diff("some")
        request = rpc.provider_messages.DiffRequest(
            id=old.id,
            urn=urn,
            olds=self._out(old.outputs),
            news=self._out(news),
            old_inputs=self._out(old.inputs),
            ignoreChanges=ignore,
            name=urn_name(urn),
            type=urn_type(urn),
        )
        return _diff(self._call(self._stub.Diff, request))

    def create(self, new: ResourceState, *, preview: bool) -> tuple[str, Properties]:
        """Create an object with the inputs of `new`. Return its id (empty in a preview) and outputs."""
        if preview and not (self._preview and self._known):
            return "", new.inputs
        request = rpc.provider_messages.CreateRequest(
            urn=new.urn,
            properties=self._out(new.inputs),
            timeout=new.custom_timeouts.get("create", 0),
            preview=preview,
            name=urn_name(new.urn),
            type=new.type,
        )
        response = self._call_marked(self._stub.Create, request, new.inputs)
        if not response.id and not preview:
            raise ProviderError(f"{self.package} created {urn_name(new.urn)!r} but returned no id to find it by")
        return response.id, self._read_properties(response.properties, new.inputs)

    def read(self, urn: str, object_id: str, inputs: Properties, outputs: Properties, timeout: float = 0) -> ReadResult:
        """Read an object. The result is empty if a preview does not know the provider's configuration yet."""
        if not self._known:
            return ReadResult(object_id, {}, {})
        request = rpc.provider_messages.ReadRequest(
            id=object_id,
            urn=urn,
            properties=self._out(outputs),
            inputs=self._out(inputs),
            name=urn_name(urn),
            type=urn_type(urn),
            timeout=timeout,
        )
        response = self._call_marked(self._stub.Read, request, outputs, inputs)
        if not response.id:
            return ReadResult("", {}, None)
        found_inputs = self._read_properties(response.inputs, inputs) if response.HasField("inputs") else None
        return ReadResult(response.id, self._read_properties(response.properties, outputs, inputs), found_inputs)

    def update(self, old: ResourceState, new: ResourceState, *, preview: bool) -> Properties:
        """Update the object of `old` to the inputs of `new`. Return its outputs."""
        if preview and not (self._preview and self._known):
            return new.inputs
        request = rpc.provider_messages.UpdateRequest(
            id=old.id,
            urn=new.urn,
            olds=self._out(old.outputs),
            news=self._out(new.inputs),
            old_inputs=self._out(old.inputs),
            ignoreChanges=new.ignore_changes,
            timeout=new.custom_timeouts.get("update", 0),
            preview=preview,
            name=urn_name(new.urn),
            type=new.type,
        )
        return self._read_properties(self._call_marked(self._stub.Update, request, new.inputs).properties, new.inputs)

    def delete(self, old: ResourceState) -> None:
        """Delete the object of a resource."""
        request = rpc.provider_messages.DeleteRequest(
            id=old.id,
            urn=old.urn,
            properties=self._out(old.outputs),
            old_inputs=self._out(old.inputs),
            timeout=old.custom_timeouts.get("delete", 0),
            name=urn_name(old.urn),
            type=old.type,
        )
        self._call(self._stub.Delete, request)

    def invoke(
        self, token: str, arguments: Properties, *, preview: bool
    ) -> tuple[Properties | None, list[InputFailure]]:
        """Call a function. The result is None if a preview does not know the provider's configuration yet."""
        if not self._known:
            return None, []
        request = rpc.provider_messages.InvokeRequest(tok=token, args=self._out(arguments), preview=preview)
        response = self._call(self._stub.Invoke, request)
        failures = [InputFailure(item.property, item.reason) for item in response.failures]
        return from_struct(getattr(response, "return")), failures

    def cancel(self) -> None:
        """Request the provider to end its calls early."""
        self._call_optional(self._stub.Cancel, rpc.EMPTY)

    def attach(self, engine: str) -> None:
        """Send the engine's address to a provider that the user has started."""
        self._call_optional(self._stub.Attach, rpc.plugin_messages.PluginAttach(address=engine))

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return rpc.call(method, request)
        except ProviderError as error:
            if error.ambiguous and (end := self._describe_end()):
                raise ProviderError(end, ambiguous=True) from None
            raise

    def _call_marked(
        self, method: Any, request: Any, secret_source: Properties, given_inputs: Properties | None = None
    ) -> Any:
        """Call as `_call` does, and mark the secrets in the properties of an InitializationError."""
        try:
            return self._call(method, request)
        except InitializationError as failed:
            if not self._secrets:
                failed.outputs = mark_secrets(failed.outputs, secret_source)
                if failed.inputs is not None:
                    failed.inputs = mark_secrets(failed.inputs, given_inputs or {})
            raise

    def _call_optional(self, method: Any, request: Any) -> Any | None:
        """Call as `_call` does. Return None if the provider does not implement the method."""
        try:
            return self._call(method, request)
        except ProviderError as error:
            if error.unimplemented:
                return None
            raise

    def _out(self, properties: Properties) -> Any:
        if not self._references:
            properties = flatten_references(properties)
        return to_struct(properties if self._secrets else plaintext_properties(properties))

    def _read_properties(self, struct: Any, secret_source: Properties, assets: Properties | None = None) -> Properties:
        """Convert a response: mark secrets as in `given`, and restore contents of assets from `assets`."""
        properties = restore_contents(from_struct(struct), secret_source if assets is None else assets)
        return properties if self._secrets else mark_secrets(properties, secret_source)


def _text(value: Value) -> str:
    value = plaintext(value)
    return value if isinstance(value, str) else json.dumps(value)


def _diff(response: Any) -> Diff:
    changes = {1: "none", 2: "some"}.get(response.changes, "unknown")
    detailed: dict[str, tuple[str, bool]] = {
        path: (_KINDS[item.kind], item.inputDiff) for path, item in response.detailedDiff.items()
    }
    return Diff(
        changes,
        list(response.diffs),
        list(response.replaces),
        list(response.stables),
        detailed if response.hasDetailedDiff or detailed else None,
        response.deleteBeforeReplace,
    )
