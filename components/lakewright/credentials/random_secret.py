"""RandomSecret: random text that a stack mints once and keeps encrypted in its state."""

import hashlib
import hmac
import os
import secrets
import uuid
from typing import Any

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
from typing_extensions import override

SEED = "LAKEWRIGHT_PLAN_SEED"
"""Environment variable: the random seed of a plan, in hexadecimal."""


def make_random_hex(purpose: str, size: int) -> str:
    """Return random text: `size` bytes in hexadecimal.

    Args:
        purpose: Purpose of the text. One seed gives different texts for different purposes.
        size: Number of bytes, at most 32.
    """
    seed = os.environ.get(SEED)
    if not seed:
        return secrets.token_hex(size)
    return hmac.digest(seed.encode(), purpose.encode(), hashlib.sha256)[:size].hex()


RANDOM_BYTES = 48
"""Bytes of randomness: more than any key here needs."""


class MintedValueProvider(ResourceProvider):
    """Mints a random value once. The value exists only in the state."""

    serialize_as_secret_always = False

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        return CheckResult({key: value for key, value in news.items() if key != "value"}, [])

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)

    @override
    def create(self, props: dict[str, Any]) -> CreateResult:
        # The engine does not encrypt the id of a resource, so the id must not be the value.
        return CreateResult(str(uuid.uuid4()), {"value": self.mint()})

    @override
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, {"value": props["value"]}, {})

    @override
    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({"value": _olds["value"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Do nothing: the value exists only in the state."""

    def mint(self) -> str:
        """Return a new random value."""
        raise NotImplementedError


class RandomSecretProvider(MintedValueProvider):
    """Mints random text."""

    @override
    def mint(self) -> str:
        return secrets.token_urlsafe(RANDOM_BYTES)


class RandomSecret(Resource, module="credentials", name="RandomSecret"):
    """Random text of 64 letters, digits, `-` and `_`. It never changes and is stored as a secret."""

    value: pulumi.Output[str]

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the resource."""
        hidden = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["value"]))
        super().__init__(RandomSecretProvider(), resource_name, {"value": None}, hidden)
