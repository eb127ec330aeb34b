"""The provider of the package `pulumi`: stack references, and lookups of resources of this deployment."""

# ruff: noqa: ARG002 - all providers have the same signatures

from __future__ import annotations

from collections.abc import Callable

from lakewright_engine.model.errors import ProviderError, UnsupportedFeatureError
from lakewright_engine.model.properties import has_secret
from lakewright_engine.model.resources import Properties, ResourceState, Value
from lakewright_engine.model.step import Diff
from lakewright_engine.model.urns import urn_type
from lakewright_engine.providers.provider import InputFailure, Provider, ReadResult

StackOutputs = Callable[[str], Properties]
"""Returns the outputs of another stack by the name in a StackReference."""


class BuiltinProvider(Provider):
    """`pulumi:pulumi:StackReference` and the functions of the package `pulumi`."""

    def __init__(self, stack_outputs: StackOutputs, find: Callable[[str], ResourceState | None]) -> None:
        """Look up stack outputs and resources with the given functions."""
        super().__init__("pulumi", None)
        self._stack_outputs = stack_outputs
        self._find = find

    def handshake(self, engine: str, root: str | None, program: str | None) -> None:
        """Do nothing: there is no process."""

    def check_config(self, urn: str, olds: Properties, news: Properties) -> tuple[Properties, list[InputFailure]]:
        """Accept any configuration."""
        return news, []

    def diff_config(self, urn: str, old_inputs: Properties, old_outputs: Properties, news: Properties) -> Diff:
        """Report no difference."""
        return Diff("none")

    def configure(self, urn: str, object_id: str, inputs: Properties) -> None:
        """Do nothing: there is no configuration."""

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes) -> tuple[Properties, list[InputFailure]]:
        """Refuse a managed resource: the package has none."""
        raise UnsupportedFeatureError(
            f"{urn}: the embedded engine does not manage the type {urn_type(urn)}; use the Pulumi CLI for this program"
        )

    def read(self, urn: str, object_id: str, inputs: Properties, outputs: Properties, timeout: float = 0) -> ReadResult:
        """Read a StackReference."""
        if urn_type(urn) != "pulumi:pulumi:StackReference":
            raise UnsupportedFeatureError(
                f"{urn}: the embedded engine cannot read a {urn_type(urn)}; use the Pulumi CLI"
            )
        name = inputs.get("name") or outputs.get("name") or object_id
        if not isinstance(name, str):
            raise ProviderError(f"{urn}: the name of the referenced stack must be a plain string")
        return ReadResult(object_id, self._reference(name), inputs)

    def _reference(self, name: str) -> Properties:
        outputs = self._stack_outputs(name)
        secret_names: list[Value] = [key for key in sorted(outputs) if has_secret(outputs[key])]
        return {"name": name, "outputs": outputs, "secretOutputNames": secret_names}

    def diff(self, urn: str, old: ResourceState, news: Properties, ignore: list[str]) -> Diff:
        """Leave the comparison to the engine."""
        return Diff("unknown")

    def delete(self, old: ResourceState) -> None:
        """Do nothing: a stack reference has no object."""

    def invoke(
        self, token: str, arguments: Properties, *, preview: bool
    ) -> tuple[Properties | None, list[InputFailure]]:
        """Return the outputs of a stack or the state of a resource."""
        if token == "pulumi:pulumi:readStackOutputs":  # noqa: S105 - a function's name
            return self._reference(str(arguments["name"])), []
        if token == "pulumi:pulumi:getResource":  # noqa: S105 - a function's name
            urn = str(arguments["urn"])
            state = self._find(urn)
            if state is None:
                raise ProviderError(f"unknown resource {urn}")
            return {"urn": urn, "id": state.id, "provider": state.provider, "state": state.outputs}, []
        raise UnsupportedFeatureError(
            f"the embedded engine has no function {token}; use the Pulumi CLI for this program"
        )

    def cancel(self) -> None:
        """Do nothing: no call takes long."""
