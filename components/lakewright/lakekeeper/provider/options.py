"""What the resource classes share: leaving out what is not given, refusing imports, replacing in the right order."""

from collections.abc import Mapping
from typing import Any

import pulumi

from lakewright.lakekeeper.provider import pending_creations as pending

ServerInput = pulumi.Input[Mapping[str, Any]]
"""`{"endpoint": ..., "auth": {...}}` with references in place of secrets: the fields of `api.server.ServerRef`."""


def given(**props: Any) -> dict[str, Any]:
    """The properties that were given."""
    return {name: value for name, value in props.items() if value is not None}


def not_imported(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions | None:
    """The same options. Raises pulumi.RunError for `import_`, which Pulumi cannot do for any dynamic resource.

    It reads the object without the properties, and so without the provider that a dynamic resource carries in them.
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
    """Options under which every replacement deletes first, whoever asked for it.

    An object with a natural key cannot be there twice: created first, the new one would take over the old one, which
    the engine then deletes.
    """
    return pulumi.ResourceOptions.merge(not_imported(opts), pulumi.ResourceOptions(delete_before_replace=True))
