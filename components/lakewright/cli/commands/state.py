"""`lakewright state`: list, remove, unprotect and rename resources in the state of a file backend."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.completions import complete_urn
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, open_stack
from lakewright.cli.stack_argument import CommandLine
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable

app = CommandLine(add_completion=False, no_args_is_help=True)

Urns = Annotated[
    list[str], typer.Argument(help="URNs, as `lakewright state ls` prints them.", autocompletion=complete_urn)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("ls")
def list_resources(
    stack: StackName,
    directory: Directory = HERE,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the URN of each resource in the state, and whether it is protected.

    Example: lakewright state ls --stack acme
    """
    project, backend = open_stack(directory, stack)
    deployment: dict[str, Any] = backend.export(project.name, stack)["deployment"]
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    if as_json:
        document = {"version": 1, "resources": [_resource_to_json(resource) for resource in resources]}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for resource in resources:
        marks = [mark for mark, key in (("protected", "protect"), ("to be deleted", "delete")) if resource.get(key)]
        print(escape_line(resource["urn"]) + (f"  ({', '.join(marks)})" if marks else ""))


@app.command("rm")
def remove(
    stack: StackName,
    urns: Urns,
    *,
    directory: Directory = HERE,
    force: Annotated[bool, typer.Option("--force", help="Also remove protected resources.")] = False,
    target_dependents: Annotated[
        bool, typer.Option("--target-dependents", help="Also remove the resources that depend on them.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove resources from the state; the objects themselves do not change.

    Example: lakewright state rm --stack acme 'urn:pulumi:acme::lakewright::aws:s3/bucket:Bucket::main'
    """
    from lakewright_engine.state import edits as state_edit  # noqa: PLC0415 - `--help` needs no engine

    removed: list[str] = []

    def edit(deployment: dict[str, Any]) -> None:
        removed.extend(state_edit.remove(deployment, urns, force=force, target_dependents=target_dependents))

    _edit(stack, directory, edit, yes=yes)
    for urn in removed:
        print(f"Removed {urn}")


@app.command()
def unprotect(
    stack: StackName,
    urns: Annotated[
        list[str] | None,
        typer.Argument(help="URNs, as `lakewright state ls` prints them.", autocompletion=complete_urn),
    ] = None,
    *,
    directory: Directory = HERE,
    everything: Annotated[bool, typer.Option("--all", help="Unprotect every resource of the stack.")] = False,
    yes: Yes = False,
) -> None:
    """Clear the protection of resources in the state, so that they can be deleted.

    Example: lakewright state unprotect --stack acme --all
    """
    from lakewright_engine.state import edits as state_edit  # noqa: PLC0415

    if bool(urns) == everything:
        raise UsageError("name the resources by their URNs, or use --all")
    unprotected: list[str] = []

    def edit(deployment: dict[str, Any]) -> None:
        unprotected.extend(state_edit.unprotect(deployment, urns or None))

    _edit(stack, directory, edit, yes=yes)
    for urn in unprotected:
        print(f"Unprotected {urn}")
    if not unprotected:
        print("Nothing was protected.")


@app.command()
def rename(
    stack: StackName,
    urn: Annotated[
        str,
        typer.Argument(help="URN of the resource, as `lakewright state ls` prints it.", autocompletion=complete_urn),
    ],
    name: Annotated[str, typer.Argument(help="New name of the resource in the program.")],
    *,
    directory: Directory = HERE,
    yes: Yes = False,
) -> None:
    """Rename a resource in the state to match a renamed declaration.

    Example: lakewright state rename --stack acme 'urn:pulumi:acme::lakewright::aws:s3/bucket:Bucket::main' lake
    """
    from lakewright_engine.state import edits as state_edit  # noqa: PLC0415

    renamed: list[str] = []

    def edit(deployment: dict[str, Any]) -> None:
        renamed.append(state_edit.rename(deployment, urn, name))

    _edit(stack, directory, edit, yes=yes)
    print(f"Renamed {urn} to {renamed[0]}")


def _resource_to_json(resource: dict[str, Any]) -> dict[str, Any]:
    return {
        "urn": resource["urn"],
        "type": resource["type"],
        "id": resource.get("id", ""),
        "protect": bool(resource.get("protect")),
        "delete": bool(resource.get("delete")),
    }


def _edit(stack: str, directory: Any, edit: Callable[[dict[str, Any]], None], *, yes: bool) -> None:
    project, backend = open_stack(directory, stack)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("--yes must be passed in to edit the state when running in non-interactive mode")
        typer.confirm(f"This edits the state of '{stack}' directly. Continue?", abort=True)
    backend.edit(project.name, stack, edit)
