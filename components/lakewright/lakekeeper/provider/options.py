"""Shared parts of the resource classes: optional properties, refusal of imports, and the order of replacements."""

from collections.abc import Mapping
from typing import Any

import pulumi

from lakewright.lakekeeper.provider import pending_creations as pending

ServerInput = pulumi.Input[Mapping[str, Any]]
"""`{"endpoint": ..., "auth": {...}}` with references in place of secrets: the fields of `api.server.ServerRef`."""


def drop_none(**props: Any) -> dict[str, Any]:
    """Return the properties that are not None."""
    return {name: value for name, value in props.items() if value is not None}


def list_aliases(earlier: str | None) -> list[str | pulumi.Alias] | None:
    """Return the alias of a resource with an earlier name."""
    return [pulumi.Alias(name=earlier)] if earlier else None


def not_imported(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions | None:
    """Return the same options, and refuse `import_`.

    Pulumi cannot import dynamic resources: it reads the object without the properties, which contain the provider.

    Raises:
        pulumi.RunError: The options have `import_`.
    """
    if opts and opts.import_ is not None:
        raise pulumi.RunError(
            f"`import_` ({opts.import_}) is not possible for resources of `lakewright.lakekeeper`, since Pulumi reads"
            " what is imported without their provider. Declare the object as it is, with `adopt=True` where the"
            " resource has it: `preview` then lists what taking it over would change."
        )
    pending.refuse_other_stack()
    return opts


def delete_first(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Return options with which every replacement deletes the old object first.

    Two objects cannot have the same natural key. If the new object were created first, it would adopt the old object,
    which the engine then deletes.
    """
    return pulumi.ResourceOptions.merge(not_imported(opts), pulumi.ResourceOptions(delete_before_replace=True))
