"""ExternalId: a random value that a role's trust policy and a warehouse's credential share, made before both."""

import uuid
from typing import Any

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
from typing_extensions import override


class ExternalIdProvider(ResourceProvider):
    """Makes a random UUID once; it lives in the state alone."""

    serialize_as_secret_always = False

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        return CheckResult({key: value for key, value in news.items() if key != "value"}, [])

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)

    @override
    def create(self, props: dict[str, Any]) -> CreateResult:
        value = str(uuid.uuid4())
        # The id of a resource is no secret to the engine, so it must not be the value.
        return CreateResult(str(uuid.uuid4()), {"value": value})

    @override
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, {"value": props["value"]}, {})

    @override
    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({"value": _olds["value"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """There is nothing outside the state."""


class ExternalId(Resource, module="lakekeeper", name="ExternalId"):
    """A random external id. AWS does not call it a secret; here it is treated as one all the same."""

    value: pulumi.Output[str]

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the resource."""
        hidden = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["value"]))
        super().__init__(ExternalIdProvider(), resource_name, {"value": None}, hidden)
