"""`lakewright external-ids`: external IDs that tenant-managed roles must require, from the stack's state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.options import HERE, Directory, StackName, existing_stack

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

_TYPE = "pulumi-python:dynamic/lakekeeper:ExternalId"


def print_external_ids(
    stack: StackName,
    *,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the external IDs that tenant-managed IAM roles must require. Needs the stack's passphrase.

    The first `up` makes them before it fails at a role that does not require them yet.
    """
    project, backend = existing_stack(directory, stack)
    snapshot = backend.load(project.name, stack)
    external_ids = {
        resource.urn.rpartition("::")[2]: _value(resource)
        for resource in (snapshot.resources if snapshot else [])
        if resource.type == _TYPE and not resource.delete
    }
    if as_json:
        print(json.dumps(external_ids, indent=2))
        return
    for name, value in sorted(external_ids.items()):
        print(f"{name}  {value}")
    if not external_ids:
        print(f"Stack '{stack}' has made no external IDs.")


def _value(state: ResourceState) -> str:
    from lakewright_engine.model.resources import SecretValue  # noqa: PLC0415 - `--help` needs no engine

    value = state.outputs["value"]
    return str(value.value if isinstance(value, SecretValue) else value)
