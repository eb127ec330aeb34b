"""The `aws` provider package: its name, its configuration, and how instances are created."""

from __future__ import annotations

from lakewright_sandbox.providers.aws.account import Account
from lakewright_sandbox.providers.aws.resources.connection import connect
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.providers.protocol.servicer import PropertyFailure

# The real provider's version whose types, ids and outputs this provider follows.
_VERSION = "7.51.1"
_SUPPORTED = {
    "accessKey",
    "endpoints",
    "profile",
    "region",
    "s3UsePathStyle",
    "secretKey",
    "sharedCredentialsFiles",
    # A sandbox has nothing to validate these against, so they are always skipped.
    "skipCredentialsValidation",
    "skipMetadataApiCheck",
    "skipRegionValidation",
    "skipRequestingAccountId",
    "token",
    "version",
}


class AwsPackage:
    """The sandbox's `aws` provider."""

    name = "aws"
    version = _VERSION
    replacing_config: frozenset[str] = frozenset()

    def check_config(self, config: Properties) -> list[PropertyFailure]:
        """Refuse configuration that only the real provider supports."""
        return [
            PropertyFailure(
                key,
                f"the sandbox's aws provider has no `{key}`; leave it out, or install the real provider with "
                "`pulumi plugin install resource aws`",
            )
            for key in sorted(config.keys() - _SUPPORTED)
            if not key.startswith("__")
        ]

    def configure(self, config: Properties) -> Account:
        """Return an instance that talks to the configured sandbox."""
        return Account(connect(config))
