"""What the resource classes share: leaving out what is not given, and replacing in the right order."""

from collections.abc import Mapping
from typing import Any

import pulumi

ServerInput = pulumi.Input[Mapping[str, Any]]
"""`{"endpoint": ..., "auth": {...}}` with references in place of secrets: the fields of `api.server.ServerRef`."""


def given(**props: Any) -> dict[str, Any]:
    """The properties that were given."""
    return {name: value for name, value in props.items() if value is not None}


def delete_first(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Options under which every replacement deletes first, whoever asked for it.

    An object with a natural key cannot be there twice: created first, the new one would take over the old one, which
    the engine then deletes.
    """
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True))
