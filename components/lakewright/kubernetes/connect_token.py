"""ConnectToken: a random token that clients of a computing unit's Spark Connect must send."""

import secrets
import uuid
from typing import Any

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
from typing_extensions import override


class ConnectTokenProvider(ResourceProvider):
    """Creates a random token once. The value exists only in the state, encrypted, and in the unit's Secret."""

    serialize_as_secret_always = False

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        return CheckResult({key: value for key, value in news.items() if key != "value"}, [])

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)

    @override
    def create(self, props: dict[str, Any]) -> CreateResult:
        # URL-safe, as Spark's clients take it in an address. The engine does not encrypt the id of a resource.
        return CreateResult(str(uuid.uuid4()), {"value": secrets.token_urlsafe(32)})

    @override
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, {"value": props["value"]}, {})

    @override
    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({"value": _olds["value"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Do nothing: the value exists only in the state and in the Secret."""


class ConnectToken(Resource, module="kubernetes", name="ConnectToken"):
    """A random token of 256 bits. Replace the resource to get another one; then the unit's pod has to restart."""

    value: pulumi.Output[str]

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the resource."""
        hidden = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["value"]))
        super().__init__(ConnectTokenProvider(), resource_name, {"value": None}, hidden)
