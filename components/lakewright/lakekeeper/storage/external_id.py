"""ExternalId: a random external id, shared by the trust policy of a role and the credential of a warehouse."""

import uuid

import pulumi
from pulumi.dynamic import Resource
from typing_extensions import override

from lakewright.credentials.random_secret import MintedValueProvider


class ExternalIdProvider(MintedValueProvider):
    """Mints a random UUID."""

    @override
    def mint(self) -> str:
        return str(uuid.uuid4())


class ExternalId(Resource, module="lakekeeper", name="ExternalId"):
    """A random external id. It is stored as a secret, although AWS does not treat external ids as secrets."""

    value: pulumi.Output[str]

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the resource."""
        hidden = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["value"]))
        super().__init__(ExternalIdProvider(), resource_name, {"value": None}, hidden)
