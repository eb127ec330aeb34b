"""`lakewright external-ids`: what the roles that tenants bring themselves have to demand, out of a stack's state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.options import HERE, Directory, StackName, existing_stack

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

_TYPE = "pulumi-python:dynamic/lakekeeper:ExternalId"


def external_ids(
    stack: StackName,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the external id of each warehouse; needs the stack's passphrase.

    A first `up` makes them before it fails at a role that does not demand them yet, when a stack has no outputs.
    """
    project, backend = existing_stack(directory, stack)
    snapshot = backend.load(project.name, stack)
    found = {
        one.urn.rpartition("::")[2]: _value(one)
        for one in (snapshot.resources if snapshot else [])
        if one.type == _TYPE and not one.delete
    }
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for name, value in sorted(found.items()):
        print(f"{name}  {value}")
    if not found:
        print(f"Stack '{stack}' has no external ids of its own.")


def _value(state: ResourceState) -> str:
    from lakewright_engine.model.resources import SecretValue  # noqa: PLC0415 - `--help` needs no engine

    value = state.outputs["value"]
    return str(value.value if isinstance(value, SecretValue) else value)
