"""CloudStorage: what storage on Azure and Google has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lakewright.storage.backend import AwsDefaults, StorageAddress, StorageBackend
from lakewright.storage.live_storage import AccessKeys, Placeholders, RoleFactsReader


class CloudStorage(StorageBackend):
    """An existing container or bucket that Lakekeeper reaches with a key, or with its own identity.

    The stack makes nothing in it.
    """

    key_field: ClassVar[str]
    """Field of `credential` with the reference to a key."""

    @classmethod
    def name_identity_location(cls, storage: Mapping[str, Any]) -> str | None:
        """Return the container or bucket, unless the storage names a credential."""
        return None if storage.get("credential") else f"{cls.service}:{cls.describe_container(storage)}"

    @classmethod
    def fill_references(
        cls,
        name: str,
        storage: Mapping[str, Any],
        keys: AccessKeys | None,  # noqa: ARG003 - keys of S3
        roles: Mapping[str, RoleFactsReader],  # noqa: ARG003
    ) -> Placeholders | None:
        """Return a reference to a key of the stack's configuration, if the warehouse has a key."""
        if "credential" not in storage:
            return None
        reference = f"config:{name.replace('-', '_')}_{cls.key_field}"
        comment = "Credentials cannot be read back: set or replace this reference."
        return Placeholders({"credential": {cls.key_field: reference}}, (reference,), comment)

    def address(self, defaults: AwsDefaults) -> StorageAddress:  # noqa: ARG002 - not on AWS
        """Return the address of the account or service."""
        return StorageAddress(endpoint=self.own_endpoint)
