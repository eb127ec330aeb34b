"""`lakewright external-ids`: external IDs that tenant-managed roles must require, from the stack's state."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lakewright.byo.stack_state import read_external_ids
from lakewright.cli.options import HERE, Directory, StackName, open_stack


def print_external_ids(
    stack: StackName,
    *,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the external IDs that tenant-managed IAM roles must require. Needs the stack's passphrase.

    These are the IDs that an `up` made, because none was reserved before. `lakewright byo reserve` takes them over, and
    prints them with the policies of the role.

    Example: lakewright external-ids --stack acme --json
    """
    project, backend = open_stack(directory, stack)
    external_ids = read_external_ids(backend.load(project.name, stack))
    if as_json:
        print(json.dumps(external_ids, indent=2))
        return
    for name, value in sorted(external_ids.items()):
        print(f"{name}  {value}")
    if not external_ids:
        print(f"Stack '{stack}' has made no external IDs.")
